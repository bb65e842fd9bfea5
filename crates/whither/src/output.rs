//! Where a View goes, and in which form.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use show::{Colour, Page, View, render_json, render_svg, render_text};

use crate::failure::{ERROR, Failure};
use crate::pager;

/// Columns where there is no terminal to ask.
const PLAIN_WIDTH: usize = 100;

/// When to colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub(crate) enum ColourChoice {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The streams of the blueprint: commands that run a program once leave stdout to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// How this command was asked to speak.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    pub(crate) json: bool,
    pub(crate) colour: ColourChoice,
    pub(crate) stream: Stream,
    /// Instead of the stream.
    pub(crate) file: Option<PathBuf>,
    /// Whether a person may turn the pages of what does not fit on a screen.
    pub(crate) pages: bool,
    /// The status of a failure to write.
    pub(crate) failure_status: u8,
}

impl Output {
    /// Writes the view in the form that was asked for.
    pub(crate) fn write(&self, view: &View) -> Result<(), Failure> {
        self.write_text(&self.rendered(view))
    }

    /// The view in the form that was asked for.
    pub(crate) fn rendered(&self, view: &View) -> String {
        let picture = self.file.as_ref().is_some_and(|f| f.extension().is_some_and(|e| e == "svg"));
        if self.json {
            format!("{}\n", render_json(view))
        } else if picture {
            render_svg(view, PLAIN_WIDTH)
        } else {
            render_text(view, self.page())
        }
    }

    /// Writes text as it is.
    pub(crate) fn write_text(&self, text: &str) -> Result<(), Failure> {
        let written = match (&self.file, self.stream) {
            (Some(path), _) => {
                return std::fs::write(path, text).map_err(|error| {
                    Failure::new(
                        self.failure_status,
                        format!("cannot write {}: {error}", path.display()),
                    )
                    .remedy("name another file with -o")
                });
            }
            (None, Stream::Stdout) if self.pages && self.is_terminal() && !self.json => {
                pager::write(text)
            }
            (None, Stream::Stdout) => io::stdout().write_all(text.as_bytes()),
            (None, Stream::Stderr) => io::stderr().write_all(text.as_bytes()),
        };
        match written {
            // The reader has seen enough (`| head`): that is no error.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other.map_err(|error| {
                Failure::new(ERROR.max(self.failure_status), format!("cannot write: {error}"))
            }),
        }
    }

    /// Makes sure that the file can be written before a long run, without touching what it holds.
    pub(crate) fn check_file(&self) -> Result<(), Failure> {
        let Some(path) = &self.file else { return Ok(()) };
        File::options().append(true).create(true).open(path).map(drop).map_err(|error| {
            Failure::new(self.failure_status, format!("cannot write {}: {error}", path.display()))
                .kept("the program was not started")
                .remedy("name another file with -o")
        })
    }

    /// Whether a person sees it as it is written.
    pub(crate) fn is_terminal(&self) -> bool {
        self.file.is_none()
            && match self.stream {
                Stream::Stdout => io::stdout().is_terminal(),
                Stream::Stderr => io::stderr().is_terminal(),
            }
    }

    /// What the reader's screen is like.
    pub(crate) fn page(&self) -> Page {
        let terminal = self.is_terminal();
        let colour = match self.colour {
            ColourChoice::Always => Colour::On,
            ColourChoice::Auto if terminal && wants_colour() => Colour::On,
            ColourChoice::Auto | ColourChoice::Never => Colour::Off,
        };
        Page { width: if terminal { terminal_width() } else { PLAIN_WIDTH }, colour }
    }
}

/// The customs of the terminal: NO_COLOR, and TERM=dumb.
fn wants_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

fn terminal_width() -> usize {
    terminal_size::terminal_size_of(io::stderr())
        .or_else(terminal_size::terminal_size)
        .map_or(PLAIN_WIDTH, |(width, _)| usize::from(width.0).max(40))
}
