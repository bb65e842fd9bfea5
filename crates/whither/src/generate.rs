//! Manual pages and completions, from the same definitions as the help.

use std::fs;
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Arguments;
use crate::failure::{ERROR, Failure};
use crate::output::Output;

/// The completion script of a shell.
pub(crate) fn completions(shell: Shell, output: &Output) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "whither", &mut script);
    output.write_text(&String::from_utf8_lossy(&script))
}

/// One page on stdout, or every page into a folder.
pub(crate) fn manual(folder: Option<&Path>, output: &Output) -> Result<(), Failure> {
    let mut command = Arguments::command();
    command.build();
    let Some(folder) = folder else {
        return output.write_text(&page(&command)?);
    };
    write_page(folder, "whither", &command)?;
    for part in command.get_subcommands().filter(|part| part.get_name() != "help") {
        let name = format!("whither-{}", part.get_name());
        write_page(folder, &name, part)?;
    }
    Ok(())
}

fn write_page(folder: &Path, name: &str, command: &clap::Command) -> Result<(), Failure> {
    let file = folder.join(format!("{name}.1"));
    fs::write(&file, page(command)?)
        .map_err(|error| Failure::new(ERROR, format!("cannot write {}: {error}", file.display())))
}

fn page(command: &clap::Command) -> Result<String, Failure> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone())
        .render(&mut page)
        .map_err(|error| Failure::new(ERROR, format!("cannot write the page: {error}")))?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}
