//! Intervals as they come: painted in place on a terminal, a line or an object each elsewhere.

use std::io;
use std::time::{Duration, Instant};

use show::{Live, render_text};

use super::account::{Account, ProcessInterval};
use super::screen::{self, Origin};
use crate::failure::Failure;
use crate::output::Output;
use crate::stat::Sink;

/// A screen that changes faster is not read.
const PAINTING: Duration = Duration::from_millis(100);

/// Shows intervals.
pub(super) struct Painter<'a> {
    sink: Sink<'a>,
    output: &'a Output,
    pub(super) origin: Origin,
    form: Form,
    painted: Option<Instant>,
    /// Processes, the one that ran last first.
    newest: Vec<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Screen,
    Lines { has_heading: bool },
    Objects,
}

impl<'a> Painter<'a> {
    pub(super) fn new(output: &'a Output, is_plain: bool) -> Result<Painter<'a>, Failure> {
        let sink = Sink::open(output, false)?;
        let is_terminal = output.is_terminal() && !is_plain;
        let form = match (output.json, is_terminal) {
            (true, _) => Form::Objects,
            (false, true) => Form::Screen,
            (false, false) => Form::Lines { has_heading: false },
        };
        let (painted, newest) = (None, Vec::new());
        Ok(Painter { sink, output, origin: Origin::default(), form, painted, newest })
    }

    /// Shows an interval that has just ended.
    pub(super) fn show(
        &mut self,
        account: &Account,
        interval: &ProcessInterval,
    ) -> Result<(), Failure> {
        self.newest.retain(|pid| *pid != interval.pid);
        self.newest.insert(0, interval.pid);
        match self.form {
            Form::Objects => {
                self.sink.write_view(&screen::interval_view(account, &self.origin, interval))
            }
            Form::Lines { has_heading } => {
                if !has_heading {
                    self.form = Form::Lines { has_heading: true };
                    self.sink.write(&screen::line_heading(account))?;
                }
                self.sink.write(&screen::line(interval))
            }
            Form::Screen => {
                self.paint(account);
                Ok(())
            }
        }
    }

    fn paint(&mut self, account: &Account) {
        let now = Instant::now();
        if self.painted.is_some_and(|before| now.duration_since(before) < PAINTING) {
            return;
        }
        let mut text = String::new();
        if self.painted.is_none() {
            text.push_str(Live::BEGIN);
        }
        self.painted = Some(now);
        let page = self.output.page();
        let height = terminal_size::terminal_size_of(io::stderr())
            .or_else(terminal_size::terminal_size)
            .map_or(24, |(_, height)| usize::from(height.0));
        let view = screen::live_view(account, &self.origin, &self.newest);
        let live = Live { width: page.width, height };
        text.push_str(&live.paint(&render_text(&view, page)));
        // A terminal that is gone is no reason to stop counting.
        let _ = self.output.write_text(&text);
    }

    /// Gives the screen back and writes the report.
    pub(super) fn finish(&mut self, account: &Account, damage: &[String]) -> Result<(), Failure> {
        self.restore();
        self.sink.write_view(&screen::report(account, &self.origin, damage))
    }

    fn restore(&mut self) {
        if self.painted.take().is_some() {
            let _ = self.output.write_text(Live::END);
        }
    }
}

impl Drop for Painter<'_> {
    fn drop(&mut self) {
        self.restore();
    }
}
