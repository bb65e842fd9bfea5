//! An event's name with where it counts: `cycles:u`.

use vocab::{Event, Mode};

/// As a user would type it.
pub fn full_name(event: &Event) -> String {
    match event.mode {
        Mode::Both => event.name.clone(),
        Mode::User => format!("{}:u", event.name),
        Mode::Kernel => format!("{}:k", event.name),
    }
}
