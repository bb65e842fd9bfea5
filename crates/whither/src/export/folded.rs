//! Folded stacks: `outer;inner count`, a line each; and the same as a picture.

use std::collections::BTreeMap;

use vocab::Count;

use super::Exported;
use super::stacks::Stacks;
use super::symbols::symbols;
use crate::sampled::Sampled;

/// Names, outermost first, with their samples; equal ones are one.
fn named(sampled: &Sampled, stacks: &Stacks) -> BTreeMap<Vec<String>, Count> {
    let symbols = symbols(sampled, stacks);
    let mut folded: BTreeMap<Vec<String>, Count> = BTreeMap::new();
    for (stack, count) in &stacks.list {
        // The image of the sampled place stands at the root: kernel and libraries are told apart
        // even where no chain was recorded.
        let leaf = stack.iter().rev().flatten().next();
        let root = leaf.map_or("[unknown]", |leaf| sampled.image_name(leaf.image));
        let mut names = if stack.len() == 1 { vec![root.to_owned()] } else { Vec::new() };
        for place in stack {
            match place.and_then(|place| symbols.get(&place)) {
                Some(symbol) => names.extend(symbol.frames.iter().rev().map(|f| f.name.clone())),
                None => names.push("[unknown]".into()),
            }
        }
        *folded.entry(names).or_default() += *count;
    }
    folded
}

pub(super) fn folded(sampled: &Sampled, stacks: &Stacks) -> Exported {
    let mut text = String::new();
    for (names, count) in named(sampled, stacks) {
        // A semicolon in a name would be another frame, and a line break another stack.
        let names: Vec<String> =
            names.iter().map(|name| show::clean(name).replace(';', ":")).collect();
        text.push_str(&format!("{} {}\n", names.join(";"), count.0));
    }
    let mut exported = Exported::text(text, stacks.total);
    exported.notes.extend(no_chains(sampled));
    exported
}

pub(super) fn flame(sampled: &Sampled, stacks: &Stacks) -> Exported {
    let folded = named(sampled, stacks);
    let title = sampled.caption();
    let frames = folded.iter().map(|(names, count)| (names.as_slice(), count.0));
    let mut exported = Exported::text(show::render_flame_svg(&title, frames), stacks.total);
    exported.notes.extend(no_chains(sampled));
    exported
}

/// A sentence where nobody recorded who called.
pub(super) fn no_chains(sampled: &Sampled) -> Option<String> {
    let has_chains = sampled.profile.stacks.keys().any(|stack| stack.event == sampled.event);
    (!has_chains).then(|| "no chains of calls were recorded: `whither record -g` keeps them".into())
}
