//! Batches out of a Parquet file.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;

use super::{Batch, Column, Kind, Lists, Maybes, Spec, Symbol, Texts, hash_range};
use crate::StoreError;
use crate::manifest::{Checks, TableEntry};

/// What of a table is wanted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Wanted {
    /// Columns that need not be read; they come back as if each row had none, or 0.
    pub(crate) without: Vec<&'static str>,
    /// Row groups that cannot hold this text in that column are passed over.
    pub(crate) only: Vec<(&'static str, String)>,
}

/// Rows to a batch: a merge holds one of each of its inputs.
const BATCH_ROWS: usize = 1 << 13;

/// A table's file, read some rows at a time. Each part is checked before it is parsed.
pub(crate) struct Rows {
    spec: &'static Spec,
    path: PathBuf,
    file: File,
    reader: SerializedFileReader<File>,
    checks: Checks,
    wanted: Wanted,
    next_group: usize,
    open: Group,
}

/// A row group that is being read: columns that were not asked for have no reader.
#[derive(Default)]
struct Group {
    readers: Vec<Option<ColumnReader>>,
    rows_left: usize,
}

impl Rows {
    /// Opens a file and checks that it is the one that was written.
    pub(crate) fn open(
        spec: &'static Spec,
        path: &Path,
        entry: &TableEntry,
        wanted: &Wanted,
    ) -> Result<Rows, StoreError> {
        let file = File::open(path).map_err(StoreError::io("read", path))?;
        let length = file.metadata().map_err(StoreError::io("read", path))?.len();
        let damaged = |what: String| StoreError::Damaged { path: path.to_owned(), what };
        if length != entry.bytes {
            return Err(damaged(format!("it has {length} of {} bytes", entry.bytes)));
        }
        // No checksum covers the first word.
        let mut magic = [0; 4];
        file.read_exact_at(&mut magic, 0).map_err(StoreError::io("read", path))?;
        if &magic != b"PAR1" {
            return Err(damaged("it does not begin as it should".into()));
        }
        let checks = entry.checks.clone();
        let footer = hash_range(&file, checks.footer_at..length);
        if footer.map_err(StoreError::io("read", path))? != last(&checks) {
            return Err(damaged("its footer has changed".into()));
        }
        let handle = file.try_clone().map_err(StoreError::io("read", path))?;
        let reader = SerializedFileReader::new(handle).map_err(StoreError::damaged(path))?;
        let schema = reader.metadata().file_metadata().schema_descr();
        for (place, column) in spec.columns.iter().enumerate() {
            let found = (place < schema.num_columns()).then(|| schema.column(place));
            let fits = found.is_some_and(|found| found.path().parts() == column.path());
            if !fits {
                return Err(damaged(format!("it has no column '{}'", column.name)));
            }
        }
        let (path, wanted) = (path.to_owned(), wanted.clone());
        let open = Group::default();
        Ok(Rows { spec, path, file, reader, checks, wanted, next_group: 0, open })
    }

    /// The next rows of the row groups that may hold what is wanted; `None` at the end.
    pub(crate) fn next(&mut self, texts: &mut Texts) -> Result<Option<Batch>, StoreError> {
        while self.open.rows_left == 0 {
            if self.next_group >= self.reader.num_row_groups() {
                return Ok(None);
            }
            let group = self.next_group;
            self.next_group += 1;
            if self.may_hold(group) {
                self.open = self.group(group)?;
            }
        }
        self.batch(texts).map(Some)
    }

    /// Whether a column of a row group is as it was written.
    fn check(&self, group: usize, column: usize) -> Result<(), StoreError> {
        let metadata = self.reader.metadata();
        let place = group * self.spec.columns.len() + column;
        let range =
            metadata.row_group(group).columns().get(column).map(ColumnChunkMetaData::byte_range);
        let (start, length) = range.unwrap_or((0, 0));
        let hash = hash_range(&self.file, start..start.saturating_add(length))
            .map_err(StoreError::io("read", &self.path))?;
        if self.checks.xxh64.get(place) == Some(&hash) {
            return Ok(());
        }
        let name = self.spec.columns.get(column).map_or("?", |column| column.name);
        let what = format!("its column '{name}' has changed");
        Err(StoreError::Damaged { path: self.path.clone(), what })
    }

    fn may_hold(&self, group: usize) -> bool {
        let metadata = self.reader.metadata().row_group(group);
        self.wanted.only.iter().all(|(name, text)| {
            let place = self.spec.columns.iter().position(|column| column.name == *name);
            let statistics = place.and_then(|place| metadata.columns().get(place)?.statistics());
            let Some(Statistics::ByteArray(bounds)) = statistics else { return true };
            let text = text.as_bytes();
            // A bound may be cut short: then it bounds from its own side still.
            bounds.min_opt().is_none_or(|min| min.data() <= text)
                && bounds.max_opt().is_none_or(|max| max.data() >= text)
        })
    }

    /// Checks a row group and opens its columns.
    fn group(&self, group: usize) -> Result<Group, StoreError> {
        let damaged = StoreError::damaged(&self.path);
        let reader = self.reader.get_row_group(group).map_err(&damaged)?;
        let rows_left = usize::try_from(reader.metadata().num_rows()).unwrap_or(0);
        let mut readers = Vec::with_capacity(self.spec.columns.len());
        for (place, column) in self.spec.columns.iter().enumerate() {
            if self.wanted.without.contains(&column.name) {
                readers.push(None);
                continue;
            }
            self.check(group, place)?;
            readers.push(Some(reader.get_column_reader(place).map_err(&damaged)?));
        }
        Ok(Group { readers, rows_left })
    }

    fn batch(&mut self, texts: &mut Texts) -> Result<Batch, StoreError> {
        let damaged = StoreError::damaged(&self.path);
        let rows = self.open.rows_left.min(BATCH_ROWS);
        let mut columns = Vec::with_capacity(self.spec.columns.len());
        for (reader, column) in self.open.readers.iter_mut().zip(self.spec.columns) {
            let read = match reader {
                None => absent(column.kind, rows),
                Some(from) => read_column(column.kind, from, rows, texts).map_err(&damaged)?,
            };
            if read.len() != rows {
                let what = format!("column '{}' has {} of {rows} rows", column.name, read.len());
                return Err(damaged(ParquetError::General(what)));
            }
            columns.push(read);
        }
        self.open.rows_left -= rows;
        if self.open.rows_left == 0 {
            self.open = Group::default();
        }
        Ok(Batch { spec: self.spec, columns })
    }
}

/// The footer's checksum.
fn last(checks: &Checks) -> &str {
    checks.xxh64.last().map_or("", String::as_str)
}

/// A column that was not asked for.
fn absent(kind: Kind, rows: usize) -> Column {
    match kind {
        Kind::Int => Column::Int(vec![0; rows]),
        Kind::MaybeInt => Column::MaybeInt(Maybes::none(rows)),
        Kind::Text | Kind::MaybeText => Column::Text(vec![Symbol::NONE; rows]),
        Kind::Ints => Column::Ints(Lists { ends: vec![0; rows], values: Vec::new() }),
        Kind::Texts => Column::Texts(Lists { ends: vec![0; rows], values: Vec::new() }),
    }
}

fn read_column(
    kind: Kind,
    reader: &mut ColumnReader,
    rows: usize,
    texts: &mut Texts,
) -> Result<Column, ParquetError> {
    match (kind, reader) {
        (Kind::Int, ColumnReader::Int64ColumnReader(reader)) => {
            Ok(Column::Int(Leaf::read(reader, rows)?.values.into_iter().map(unsigned).collect()))
        }
        (Kind::MaybeInt, ColumnReader::Int64ColumnReader(reader)) => {
            let leaf = Leaf::read(reader, rows)?;
            let mut values = leaf.values.into_iter().map(unsigned);
            let at = |&level: &i16| if level > 0 { values.next() } else { None };
            Ok(Column::MaybeInt(leaf.present.iter().map(at).collect()))
        }
        (Kind::Text | Kind::MaybeText, ColumnReader::ByteArrayColumnReader(reader)) => {
            let leaf = Leaf::read(reader, rows)?;
            let levels = if kind == Kind::Text { vec![1; leaf.values.len()] } else { leaf.present };
            Ok(Column::Text(symbols(&levels, 1, &leaf.values, texts)?))
        }
        (Kind::Ints, ColumnReader::Int64ColumnReader(reader)) => {
            let leaf = Leaf::read(reader, rows)?;
            let ends = leaf.ends();
            Ok(Column::Ints(Lists {
                ends,
                values: leaf.values.into_iter().map(unsigned).collect(),
            }))
        }
        (Kind::Texts, ColumnReader::ByteArrayColumnReader(reader)) => {
            let leaf = Leaf::read(reader, rows)?;
            let held: Vec<i16> = leaf.present.iter().copied().filter(|&level| level > 0).collect();
            let values = symbols(&held, 2, &leaf.values, texts)?;
            Ok(Column::Texts(Lists { ends: leaf.ends(), values }))
        }
        _ => Err(ParquetError::General("a column has another type than it should".into())),
    }
}

fn unsigned(value: i64) -> u64 {
    value as u64
}

/// One text a level; a level below `full` is no text. Runs of one text are looked up once.
fn symbols(
    levels: &[i16],
    full: i16,
    values: &[ByteArray],
    texts: &mut Texts,
) -> Result<Vec<Symbol>, ParquetError> {
    let mut values = values.iter();
    let mut last: (&[u8], Symbol) = (&[], Symbol::NONE);
    let mut found = Vec::with_capacity(levels.len());
    for &level in levels {
        if level < full {
            found.push(Symbol::NONE);
            continue;
        }
        let bytes = values.next().map_or(&[][..], ByteArray::data);
        let same_place = std::ptr::eq(bytes.as_ptr(), last.0.as_ptr());
        if last.1 == Symbol::NONE || bytes.len() != last.0.len() || (!same_place && bytes != last.0)
        {
            let text = std::str::from_utf8(bytes)
                .map_err(|_| ParquetError::General("a text is not UTF-8".into()))?;
            last = (bytes, texts.number(text));
        }
        found.push(last.1);
    }
    Ok(found)
}

/// A leaf column as Parquet has it.
struct Leaf<T> {
    values: Vec<T>,
    present: Vec<i16>,
    repeated: Vec<i16>,
}

impl<T> Leaf<T> {
    fn read<D: DataType<T = T>>(
        reader: &mut ColumnReaderImpl<D>,
        rows: usize,
    ) -> Result<Leaf<T>, ParquetError> {
        let mut leaf = Leaf { values: Vec::new(), present: Vec::new(), repeated: Vec::new() };
        reader.read_records(
            rows,
            Some(&mut leaf.present),
            Some(&mut leaf.repeated),
            &mut leaf.values,
        )?;
        Ok(leaf)
    }

    /// Where each list ends among the elements.
    fn ends(&self) -> Vec<usize> {
        let mut ends: Vec<usize> = Vec::new();
        let mut elements = 0;
        for (&present, &repeated) in self.present.iter().zip(&self.repeated) {
            elements += usize::from(present > 0);
            match ends.last_mut() {
                Some(end) if repeated > 0 => *end = elements,
                _ => ends.push(elements),
            }
        }
        ends
    }
}
