//! Where counts go while they come: a stream, or a file that grows.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

use crate::failure::Failure;
use crate::output::Output;

/// Open from the first interval to the last.
pub(crate) struct Sink<'a> {
    output: &'a Output,
    file: Option<File>,
}

impl<'a> Sink<'a> {
    /// Opens the file, if one was named; nothing has run yet.
    pub(crate) fn open(output: &'a Output, appends: bool) -> Result<Sink<'a>, Failure> {
        let Some(path) = &output.file else { return Ok(Sink { output, file: None }) };
        let opened = OpenOptions::new()
            .create(true)
            .append(appends)
            .write(true)
            .truncate(!appends)
            .open(path);
        let file = opened.map_err(|error| {
            let what = format!("cannot write {}: {error}", path.display());
            Failure::new(output.failure_status, what)
                .kept("the program was not started")
                .remedy("name another file with -o")
        })?;
        Ok(Sink { output, file: Some(file) })
    }

    /// Writes now; a reader that follows sees it at once.
    pub(crate) fn write(&mut self, text: &str) -> Result<(), Failure> {
        let Some(file) = &mut self.file else { return self.output.write_text(text) };
        file.write_all(text.as_bytes()).and_then(|()| file.flush()).map_err(|error: io::Error| {
            Failure::new(self.output.failure_status, format!("cannot write: {error}"))
        })
    }

    /// The View, in the form that was asked for.
    pub(crate) fn write_view(&mut self, view: &show::View) -> Result<(), Failure> {
        let text = self.output.rendered(view);
        self.write(&text)
    }

    pub(crate) fn is_json(&self) -> bool {
        self.output.json
    }
}
