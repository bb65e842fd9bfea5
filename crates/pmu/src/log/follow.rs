//! Reading a log, while it is written or afterwards.

use std::fmt;

use super::bytes::{Body, check};
use super::{Header, MAGIC, RECORD_BYTES_MAX, Record, Slice, VERSION};
use crate::Reading;

/// Why a log cannot be read further. What was read before stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LogError {
    /// It does not begin as a counter log does.
    NotALog,
    /// It is of a later version.
    Version(u64),
    /// A record makes no sense.
    Damaged {
        /// Where it begins.
        offset: u64,
    },
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::NotALog => f.write_str("this is not a counter log"),
            LogError::Version(version) => write!(
                f,
                "the counter log is of version {version}, and this program reads up to {VERSION}"
            ),
            LogError::Damaged { offset } => {
                write!(f, "the counter log is damaged from byte {offset}; what came before stands")
            }
        }
    }
}

impl std::error::Error for LogError {}

/// Takes bytes as they arrive and gives back whole records.
#[derive(Clone, Debug, Default)]
pub struct Follower {
    bytes: Vec<u8>,
    read: usize,
    dropped: u64,
    has_begun: bool,
}

impl Follower {
    /// A follower at the start of a log.
    pub fn new() -> Follower {
        Follower::default()
    }

    /// Takes the next bytes of the log.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.read > RECORD_BYTES_MAX {
            self.bytes.drain(..self.read);
            self.dropped += self.read as u64;
            self.read = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Where in the log the next record begins.
    pub fn offset(&self) -> u64 {
        self.dropped + self.read as u64
    }

    /// Bytes that were fed and belong to no whole record yet. Zeros that a writer laid out in
    /// advance are among them: read again from [`Follower::offset`] to see them filled.
    pub fn pending(&self) -> usize {
        self.bytes.len() - self.read
    }

    /// Forgets what is pending, so that it can be read again from [`Follower::offset`].
    pub fn forget_pending(&mut self) {
        self.bytes.truncate(self.read);
    }

    /// The next whole record; `None` until more arrives. Records of kinds that are not known are
    /// passed over.
    ///
    /// # Errors
    ///
    /// The log ends here: it is no log, too new, or damaged.
    pub fn next_record(&mut self) -> Result<Option<Record>, LogError> {
        if !self.has_begun {
            let Some(magic) = self.bytes.get(..MAGIC.len()) else {
                let is_start = MAGIC.starts_with(&self.bytes);
                return if is_start { Ok(None) } else { Err(LogError::NotALog) };
            };
            if magic != MAGIC {
                return Err(LogError::NotALog);
            }
            self.read = MAGIC.len();
            self.has_begun = true;
        }
        loop {
            let damaged = LogError::Damaged { offset: self.offset() };
            let rest = self.bytes.get(self.read..).unwrap_or_default();
            let Some((length, rest)) = rest.split_at_checked(4) else { return Ok(None) };
            let length = length.try_into().map_or(0, u32::from_le_bytes) as usize;
            if length == 0 {
                return Ok(None);
            }
            if length > RECORD_BYTES_MAX {
                return Err(damaged);
            }
            let Some((expected, rest)) = rest.split_at_checked(4) else { return Ok(None) };
            let Some(record) = rest.get(..length) else { return Ok(None) };
            let expected = expected.try_into().map_or(0, u32::from_le_bytes);
            if check(record) != expected {
                // A writer that fills a mapping may be in the middle of this very record.
                let is_last = rest.get(length..).is_none_or(|after| after.iter().all(|b| *b == 0));
                return if is_last { Ok(None) } else { Err(damaged) };
            }
            let parsed = parse(record);
            match parsed {
                Some(Ok(record)) => {
                    self.read += 8 + length;
                    return Ok(Some(record));
                }
                Some(Err(version)) => return Err(version),
                None => {
                    let is_known = matches!(record.first(), Some(1..=4));
                    if is_known {
                        return Err(damaged);
                    }
                    self.read += 8 + length;
                }
            }
        }
    }
}

fn parse(record: &[u8]) -> Option<Result<Record, LogError>> {
    let (&kind, body) = record.split_first()?;
    let mut body = Body(body);
    let record = match kind {
        1 => {
            let version = body.number()?;
            if version > VERSION {
                return Some(Err(LogError::Version(version)));
            }
            Record::Header(header(&mut body)?)
        }
        2 => Record::Slice(slice(&mut body)?),
        3 => {
            let (pid, parent) = (body.small()?, body.small()?);
            Record::Process { pid, parent, name: body.text()? }
        }
        4 => Record::End { pid: body.small()?, tid: body.small()? },
        _ => return None,
    };
    Some(Ok(record))
}

fn header(body: &mut Body<'_>) -> Option<Header> {
    let header = Header {
        source: body.text()?,
        machine: body.text()?,
        mode: body.text()?,
        boundary: body.text()?,
        slice: body.number()?,
        events: body.list(Body::text)?,
        anchors: body.small()?,
        groups: body.list(|body| body.list(Body::small))?,
    };
    let is_event = |event: &usize| *event < header.events.len();
    let fits = header.groups.iter().flatten().all(is_event);
    (fits && header.anchors <= header.events.len()).then_some(header)
}

fn slice(body: &mut Body<'_>) -> Option<Slice> {
    let (pid, tid, at) = (body.small()?, body.small()?, body.number()?);
    let (group, round) = (body.small()?, body.number()?);
    let counts = body.list(Body::number)?;
    Some(Slice { pid, tid, at, reading: Reading { group, round, counts } })
}
