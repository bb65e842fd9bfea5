//! From overlapping claims to one owner for every address.
//!
//! ```text
//! symbols      |-- a --------------|        |- b -|  |c (no size)
//! inner              |- d -|
//! unwind                                    |---------| |------|
//! result       |- a -|- d -|-- a --|        |- b -|u|   ...
//! ```
//!
//! Sources are laid down in order of trust: a later one only fills what the earlier left free.
//! Within one source the claim that starts last wins, so an inner procedure interrupts an outer
//! one, which goes on after it.

use std::sync::Arc;

use crate::elf::{Extent, holding};
use crate::procedure::NameSource;
use crate::symbols::{Symbol, best_of_aliases};

/// A stretch of virtual addresses with an owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub(crate) extent: Extent,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) source: NameSource,
}

/// Gives every address of the code at most one owner. The result is sorted and disjoint.
pub(crate) fn lay_out(
    layers: &[(NameSource, &[Symbol])],
    unwind: &[Extent],
    code: &[Extent],
) -> Vec<Piece> {
    let frames = clamp(unwind, code);
    let layers: Vec<(NameSource, Vec<Symbol>)> = layers
        .iter()
        .map(|(source, symbols)| (*source, without_inner_labels(symbols, &frames, code)))
        .collect();
    let starts = starts(&layers, &frames);
    let mut laid = Vec::new();
    for (source, symbols) in &layers {
        let claims = symbols.iter().map(|symbol| Piece {
            extent: Extent { start: symbol.address, end: end(symbol, &starts, &frames, code) },
            name: Some(Arc::clone(&symbol.name)),
            source: *source,
        });
        laid = fill(laid, sweep(claims.collect()));
    }
    fill(laid, frames)
}

/// The unwind ranges as disjoint pieces within the code.
fn clamp(unwind: &[Extent], code: &[Extent]) -> Vec<Piece> {
    let mut claims: Vec<Extent> = unwind
        .iter()
        .filter_map(|range| {
            let held = holding(code, range.start)?;
            Some(Extent { start: range.start, end: range.end.min(held.end) })
        })
        .collect();
    // Of two that start together the shorter says more.
    claims.sort_unstable();
    claims.dedup_by_key(|claim| claim.start);
    let nameless = |extent| Piece { extent, name: None, source: NameSource::Unwind };
    sweep(claims.into_iter().map(nameless).collect())
}

/// One symbol for every address of the code, without the labels inside a procedure: those that
/// have no size of their own and lie within a sized symbol, and undeclared ones within an unwind
/// range that some symbol begins.
fn without_inner_labels(symbols: &[Symbol], frames: &[Piece], code: &[Extent]) -> Vec<Symbol> {
    let inside = symbols.iter().filter(|symbol| holding(code, symbol.address).is_some());
    let mut kept = best_of_aliases(inside.cloned().collect());
    let begun: Vec<u64> = kept.iter().map(|symbol| symbol.address).collect();
    let mut covered = 0;
    kept.retain(|symbol| {
        if symbol.size > 0 {
            let held = holding(code, symbol.address).map_or(symbol.address, |held| held.end);
            covered = covered.max(symbol.address.saturating_add(symbol.size).min(held));
            return true;
        }
        let frame = frame_at(frames, symbol.address).filter(|frame| frame.start < symbol.address);
        let inner = frame.is_some_and(|frame| begun.binary_search(&frame.start).is_ok());
        symbol.address >= covered && (symbol.declared || !inner)
    });
    kept
}

fn starts(layers: &[(NameSource, Vec<Symbol>)], frames: &[Piece]) -> Vec<u64> {
    let symbols = layers.iter().flat_map(|(_, symbols)| symbols.iter().map(|s| s.address));
    let mut starts: Vec<u64> = symbols.chain(frames.iter().map(|f| f.extent.start)).collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}

/// Where a symbol ends: after its size, or, without one, where the next procedure or unwind range
/// starts, its own unwind range ends, or its section does, whichever comes first.
fn end(symbol: &Symbol, starts: &[u64], frames: &[Piece], code: &[Extent]) -> u64 {
    let held = holding(code, symbol.address).map_or(symbol.address, |held| held.end);
    if symbol.size > 0 {
        return symbol.address.saturating_add(symbol.size).min(held);
    }
    let after = starts.partition_point(|&start| start <= symbol.address);
    let next = starts.get(after).copied().unwrap_or(held);
    let frame = frame_at(frames, symbol.address).map_or(held, |frame| frame.end);
    held.min(next).min(frame)
}

fn frame_at(frames: &[Piece], address: u64) -> Option<Extent> {
    let after = frames.partition_point(|frame| frame.extent.start <= address);
    let candidate = frames.get(after.checked_sub(1)?)?.extent;
    (address < candidate.end).then_some(candidate)
}

/// Resolves overlaps among claims that are sorted by start. An outer claim goes on after an inner
/// one, so there are at most twice as many pieces as claims.
fn sweep(claims: Vec<Piece>) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity(claims.len());
    let mut open: Vec<Piece> = Vec::new();
    let mut reached = 0;
    for claim in claims {
        emit(&mut open, &mut reached, claim.extent.start, &mut pieces);
        reached = reached.max(claim.extent.start);
        open.push(claim);
    }
    emit(&mut open, &mut reached, u64::MAX, &mut pieces);
    pieces
}

/// Writes what the open claims own up to `limit`; the one that started last goes first.
fn emit(open: &mut Vec<Piece>, reached: &mut u64, limit: u64, pieces: &mut Vec<Piece>) {
    while let Some(top) = open.last() {
        let end = top.extent.end.min(limit);
        if end > *reached {
            pieces.push(Piece { extent: Extent { start: *reached, end }, ..top.clone() });
            *reached = end;
        }
        if top.extent.end > limit {
            return;
        }
        open.pop();
    }
}

/// Adds the parts of `more` that `laid` leaves free. Both are sorted and disjoint.
fn fill(laid: Vec<Piece>, more: Vec<Piece>) -> Vec<Piece> {
    let mut filled = Vec::with_capacity(laid.len() + more.len());
    let mut laid = laid.into_iter().peekable();
    for piece in more {
        let mut start = piece.extent.start;
        while let Some(owner) = laid.next_if(|owner| owner.extent.start < piece.extent.end) {
            push_part(&mut filled, &piece, start, owner.extent.start);
            start = start.max(owner.extent.end);
            filled.push(owner);
        }
        push_part(&mut filled, &piece, start, piece.extent.end);
    }
    filled.extend(laid);
    filled
}

fn push_part(filled: &mut Vec<Piece>, piece: &Piece, start: u64, end: u64) {
    // An owner written for an earlier piece may reach into this one.
    let reached = filled.last().map_or(0, |last| last.extent.end);
    let start = start.max(reached);
    if start < end {
        filled.push(Piece { extent: Extent { start, end }, ..piece.clone() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::Binding;

    const CODE: [Extent; 2] = [Extent { start: 8, end: 60 }, Extent { start: 70, end: 100 }];

    fn symbol(address: u64, size: u64, name: &str) -> Symbol {
        let name = Arc::from(name);
        Symbol { address, size, binding: Binding::Global, declared: true, name }
    }

    fn part_of(piece: &Piece) -> (u64, u64, &str) {
        (piece.extent.start, piece.extent.end, piece.name.as_deref().unwrap_or("?"))
    }

    fn parts(pieces: &[Piece]) -> Vec<(u64, u64, &str)> {
        pieces.iter().map(part_of).collect()
    }

    #[test]
    fn symbols_without_size_reach_to_the_nearest_bound() {
        let table = [symbol(8, 0, "a"), symbol(20, 0, "b"), symbol(40, 0, "c"), symbol(70, 0, "d")];
        let unwind = [Extent { start: 20, end: 30 }, Extent { start: 50, end: 55 }];
        let pieces = lay_out(&[(NameSource::Symtab, &table)], &unwind, &CODE);
        let expected = [(8, 20, "a"), (20, 30, "b"), (40, 50, "c"), (50, 55, "?"), (70, 100, "d")];
        assert_eq!(parts(&pieces), expected);
    }

    #[test]
    fn less_trusted_sources_fill_only_what_is_free() {
        let table = [symbol(10, 10, "a"), symbol(30, 10, "b")];
        let dynamic = [symbol(10, 5, "alias"), symbol(15, 40, "wide")];
        let layers = [(NameSource::Symtab, &table[..]), (NameSource::Dynsym, &dynamic[..])];
        let unwind = [Extent { start: 8, end: 200 }];
        let pieces = lay_out(&layers, &unwind, &CODE);
        let expected = [
            (8, 10, "?"),
            (10, 20, "a"),
            (20, 30, "wide"),
            (30, 40, "b"),
            (40, 55, "wide"),
            (55, 60, "?"),
        ];
        assert_eq!(parts(&pieces), expected);
    }

    /// The owner of one address by definition: of the first source that claims it, the claim that
    /// starts last.
    fn owner(layers: &[Vec<Symbol>], unwind: &[Extent], address: u64) -> Option<String> {
        let held = holding(&CODE, address)?;
        let covers = |start: u64, size: u64| {
            (held.start..=address).contains(&start) && address - start < size
        };
        let symbols = layers.iter().find_map(|layer| {
            let claims = layer.iter().filter(|s| covers(s.address, s.size));
            claims.max_by(|a, b| a.address.cmp(&b.address).then_with(|| a.merit().cmp(&b.merit())))
        });
        let frame = unwind.iter().any(|range| covers(range.start, range.end - range.start));
        symbols.map(|s| s.name.to_string()).or(frame.then(|| "?".to_owned()))
    }

    #[test]
    fn every_address_has_the_owner_that_the_definition_gives_it() {
        let mut state = 1_u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..2000 {
            // One symbol per address, so that the definition has no aliases with other sizes.
            let mut layer = |prefix: &str| -> Vec<Symbol> {
                let count = draw(8);
                let starts: std::collections::BTreeSet<u64> =
                    (0..count).map(|_| draw(110)).collect();
                let named = |start| symbol(start, 1 + draw(50), &format!("{prefix}{start}"));
                starts.into_iter().map(named).collect()
            };
            let layers = [layer("a"), layer("b")];
            let unwind: Vec<Extent> = layer("u")
                .iter()
                .map(|s| Extent { start: s.address, end: s.address + s.size })
                .collect();
            let given =
                [(NameSource::Symtab, &layers[0][..]), (NameSource::Dynsym, &layers[1][..])];
            let pieces = lay_out(&given, &unwind, &CODE);
            assert!(pieces.windows(2).all(|pair| pair[0].extent.end <= pair[1].extent.start));
            for address in 0..120 {
                let found = pieces
                    .iter()
                    .find(|piece| piece.extent.start <= address && address < piece.extent.end);
                let name = found.map(|piece| piece.name.as_deref().unwrap_or("?").to_owned());
                assert_eq!(name, owner(&layers, &unwind, address), "at {address}");
            }
        }
    }
}
