//! The labels of one micro-op as bytes.
//!
//! ```text
//! code  code_translation  resteer  bubble  stuck  stands  operands
//! redirect: micro-ops, cycles   contention  hit  short  long  miss  level  translation
//! fixed  beyond  late
//! flags: 1 wait  2 line  4 forward  8 write  16 walk, and for each that is set
//!     wait: 0 issue or 1 retirement, micro-ops, cycles
//!     line, forward: pc, instructions back, runs between + 1 or 0 (not in version 1), micro-op,
//!         cycles
//!     write: cycles
//!     walk: cycles, 1 waits + 2 holds up
//! ```

use super::bytes::{Reader, number};
use crate::shotgun::{Labels, Link, Stands};
use crate::{DispatchWait, Kind, Wait, Walk};

/// As few bytes as labels may take.
pub(super) const FEWEST_BYTES: usize = 20;

const WAIT: u64 = 1;
const LINE: u64 = 2;
const FORWARD: u64 = 4;
const WRITE: u64 = 8;
const WALK: u64 = 16;

const WAITS: u64 = 1;
const HOLDS_UP: u64 = 2;

/// Levels that a load can miss to, by number.
const LEVELS: [Kind; 4] = [Kind::Line, Kind::L2, Kind::L3, Kind::Memory];

pub(super) fn put(to: &mut Vec<u8>, labels: &Labels) {
    let level = LEVELS.iter().position(|&kind| kind == labels.level).unwrap_or(0);
    for value in [
        labels.code,
        labels.code_translation,
        labels.resteer,
        labels.bubble,
        labels.stuck,
        u32::from(labels.stands.0),
        u32::from(labels.operands),
        labels.redirect.0,
        labels.redirect.1,
        labels.contention,
        labels.hit,
        labels.short,
        labels.long,
        labels.miss,
        level as u32,
        labels.translation,
        labels.fixed,
        labels.beyond,
        labels.late,
    ] {
        number(to, u64::from(value));
    }
    let flag = |is_there: bool, flag: u64| if is_there { flag } else { 0 };
    let flags = flag(labels.wait.is_some(), WAIT)
        | flag(labels.line.is_some(), LINE)
        | flag(labels.forward.is_some(), FORWARD)
        | flag(labels.write.is_some(), WRITE)
        | flag(labels.walk.is_some(), WALK);
    number(to, flags);
    if let Some(wait) = labels.wait {
        number(to, u64::from(wait.from == Wait::Commit));
        number(to, u64::from(wait.distance));
        number(to, u64::from(wait.label));
    }
    for (link, cycles) in [labels.line, labels.forward].into_iter().flatten() {
        number(to, link.pc);
        number(to, u64::from(link.back));
        number(to, link.runs.map_or(0, |runs| u64::from(runs) + 1));
        number(to, u64::from(link.op));
        number(to, u64::from(cycles));
    }
    if let Some(cycles) = labels.write {
        number(to, u64::from(cycles));
    }
    if let Some(walk) = labels.walk {
        number(to, u64::from(walk.cycles));
        number(to, flag(walk.waits, WAITS) | flag(walk.holds_up, HOLDS_UP));
    }
}

pub(super) fn get(from: &mut Reader<'_>, version: u64) -> Option<Labels> {
    let mut labels = Labels {
        code: from.small()?,
        code_translation: from.small()?,
        resteer: from.small()?,
        bubble: from.small()?,
        stuck: from.small()?,
        stands: Stands(u8::try_from(from.small()?).ok()?),
        operands: u8::try_from(from.small()?).ok()?,
        redirect: (from.small()?, from.small()?),
        contention: from.small()?,
        hit: from.small()?,
        short: from.small()?,
        long: from.small()?,
        miss: from.small()?,
        level: *LEVELS.get(from.small()? as usize)?,
        translation: from.small()?,
        fixed: from.small()?,
        beyond: from.small()?,
        late: from.small()?,
        ..Labels::default()
    };
    let flags = from.number()?;
    if flags & WAIT != 0 {
        labels.wait = Some(wait(from)?);
    }
    if flags & LINE != 0 {
        labels.line = Some(link(from, version)?);
    }
    if flags & FORWARD != 0 {
        labels.forward = Some(link(from, version)?);
    }
    if flags & WRITE != 0 {
        labels.write = Some(from.small()?);
    }
    if flags & WALK != 0 {
        labels.walk = Some(walk(from)?);
    }
    (flags < 2 * WALK).then_some(labels)
}

fn wait(from: &mut Reader<'_>) -> Option<DispatchWait> {
    let node = match from.number()? {
        0 => Wait::Issue,
        1 => Wait::Commit,
        _ => return None,
    };
    Some(DispatchWait { from: node, distance: from.small()?, label: from.small()? })
}

fn walk(from: &mut Reader<'_>) -> Option<Walk> {
    let (cycles, how) = (from.small()?, from.number()?);
    let walk = Walk { cycles, waits: how & WAITS != 0, holds_up: how & HOLDS_UP != 0 };
    (how <= (WAITS | HOLDS_UP)).then_some(walk)
}

fn link(from: &mut Reader<'_>, version: u64) -> Option<(Link, u32)> {
    let (pc, back) = (from.number()?, from.small()?);
    let runs = if version > 1 { from.small()?.checked_sub(1) } else { None };
    let op = u8::try_from(from.small()?).ok()?;
    Some((Link { pc, back, runs, op }, from.small()?))
}
