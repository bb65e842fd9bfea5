//! One View, many forms.
//!
//! Constraints: a [`View`] is built once and rendered as text or JSON; neither form can say what
//! the other does not. Text from outside (paths, symbol names) is cleaned here and nowhere else,
//! so that no name can move the cursor or recolour the terminal.
//!
//! Not for: deciding what to show (the command builds the View), reading a database, or knowing
//! what a terminal is (the caller passes width and colour).
//!
//! ```text
//! View ─┬─ render_text(width, colour) ── lines for a person ─── render_svg: a picture of them
//!       ├─ Live::paint(text) ────────── the same lines, painted in place
//!       └─ render_json() ─────────────── {"schema":"whither.run","version":1, section: …}
//! Graph ── render_graph_svg, render_graph_dot        stacks ── render_flame_svg
//! ```
#![forbid(unsafe_code)]

mod bar;
mod cell;
mod clean;
mod colour;
mod flame;
mod graph;
mod json;
mod live;
mod stack;
mod svg;
mod table;
mod text;
mod view;

pub use bar::bar;
pub use cell::{Cell, Unit, duration};
pub use clean::clean;
pub use colour::{Colour, Tone};
pub use flame::render_flame_svg;
pub use graph::{Graph, Node, Way, render_graph_dot, render_graph_svg};
pub use json::render_json;
pub use live::Live;
pub use stack::Part;
pub use svg::render_svg;
pub use text::{Page, render_text};
pub use view::{Align, Body, Column, Fact, Row, Schema, Section, Shown, Table, View};
