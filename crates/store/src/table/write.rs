//! Batches into a Parquet file.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnDescPtr, ColumnPath};

use super::runs::{Chunk, empty_chunk, texts_chunk};
use super::{Batch, Column, Kind, Packing, Spec, Symbol, Texts};

/// Rows to a row group: small enough that a merge holds the rows of one in memory, large enough that
/// a dictionary pays.
pub(crate) const ROWS_PER_GROUP: usize = 1 << 15;
/// How hard a file is squeezed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effort {
    /// For a segment that will be merged soon: bytes that live for minutes are not worth the time.
    Quick,
    /// For what stays.
    Thorough,
}

impl Effort {
    /// zstd's levels. Higher ones than the last gain under two per cent here and take several
    /// times as long.
    fn level(self) -> i32 {
        match self {
            Effort::Quick => 1,
            Effort::Thorough => 9,
        }
    }
}

/// A table's file on its way to disk; rows must come sorted by key.
pub(crate) struct TableFile<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    level: i32,
}

impl<W: Write + Send> TableFile<W> {
    pub(crate) fn new(spec: &Spec, to: W, effort: Effort) -> Result<TableFile<W>, ParquetError> {
        let level = effort.level();
        let schema = Arc::new(parse_message_type(&spec.message())?);
        let writer = SerializedFileWriter::new(to, schema, Arc::new(properties(spec, level)?))?;
        Ok(TableFile { writer, level })
    }

    /// One batch is one row group.
    pub(crate) fn write(&mut self, batch: &Batch, texts: &Texts) -> Result<(), ParquetError> {
        let leaves = self.writer.schema_descr().columns().to_vec();
        let mut group = self.writer.next_row_group()?;
        for (column, leaf) in batch.columns.iter().zip(leaves) {
            if let Some(chunk) = in_runs(column, leaf, texts, self.level)? {
                group.append_column(&chunk.bytes, chunk.close)?;
                continue;
            }
            let Some(mut to) = group.next_column()? else { break };
            write_column(&mut to, column, texts)?;
            to.close()?;
        }
        group.close().map(drop)
    }

    /// Writes the footer and says where everything lies.
    pub(crate) fn finish(mut self) -> Result<ParquetMetaData, ParquetError> {
        let metadata = self.writer.finish()?;
        self.writer.inner_mut().flush()?;
        Ok(metadata)
    }
}

fn properties(spec: &Spec, level: i32) -> Result<WriterProperties, ParquetError> {
    let mut builder = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(level)?))
        .set_created_by(format!("whither {}", env!("CARGO_PKG_VERSION")))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_data_page_row_count_limit(ROWS_PER_GROUP)
        .set_offset_index_disabled(true);
    for column in spec.columns {
        let path = ColumnPath::from(column.path());
        let dictionary = column.packing == Packing::Dictionary;
        builder = builder.set_column_dictionary_enabled(path.clone(), dictionary);
        if matches!(column.kind, Kind::Int | Kind::MaybeInt | Kind::Ints) {
            builder = builder.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    Ok(builder.build())
}

/// Columns that are encoded here: texts, and numbers of which there are none.
fn in_runs(
    column: &Column,
    leaf: ColumnDescPtr,
    texts: &Texts,
    level: i32,
) -> Result<Option<Chunk>, ParquetError> {
    match column {
        Column::Text(symbols) => texts_chunk(leaf, symbols, texts, level).map(Some),
        Column::MaybeInt(values) if values.is_none() => {
            empty_chunk(leaf, values.len(), level).map(Some)
        }
        _ => Ok(None),
    }
}

fn write_column(
    to: &mut SerializedColumnWriter<'_>,
    column: &Column,
    texts: &Texts,
) -> Result<(), ParquetError> {
    match column {
        Column::Int(values) => {
            let values: Vec<i64> = values.iter().map(|&value| value as i64).collect();
            to.typed::<Int64Type>().write_batch(&values, None, None)?;
        }
        Column::MaybeInt(values) => {
            let levels: Vec<i16> = values.iter().map(|v| i16::from(v.is_some())).collect();
            let values: Vec<i64> = values.iter().flatten().map(|value| value as i64).collect();
            to.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
        }
        Column::Text(_) => debug_assert!(false, "texts are written in runs"),
        Column::Ints(lists) => {
            let (present, repeated) = levels(&lists.ends);
            let values: Vec<i64> = lists.values.iter().map(|&value| value as i64).collect();
            to.typed::<Int64Type>().write_batch(&values, Some(&present), Some(&repeated))?;
        }
        Column::Texts(lists) => {
            let (mut present, repeated) = levels(&lists.ends);
            let (values, spelled) = spelled(&lists.values, texts);
            // An element may be missing: one level more than an empty list.
            let held = present.iter_mut().filter(|level| **level == 1);
            held.zip(&spelled).for_each(|(level, is_there)| *level += is_there);
            to.typed::<ByteArrayType>().write_batch(&values, Some(&present), Some(&repeated))?;
        }
    }
    Ok(())
}

/// The texts that are there, and for every place whether one is.
fn spelled(symbols: &[Symbol], texts: &Texts) -> (Vec<ByteArray>, Vec<i16>) {
    let mut last = (Symbol::NONE, ByteArray::new());
    let mut values = Vec::new();
    let mut levels = Vec::with_capacity(symbols.len());
    for &symbol in symbols {
        let text = texts.text(symbol);
        levels.push(i16::from(text.is_some()));
        if let Some(text) = text {
            if last.0 != symbol {
                last = (symbol, ByteArray::from(text));
            }
            values.push(last.1.clone());
        }
    }
    (values, levels)
}

/// Definition and repetition levels of lists that are always there but may be empty.
fn levels(ends: &[usize]) -> (Vec<i16>, Vec<i16>) {
    let (mut present, mut repeated) = (Vec::new(), Vec::new());
    let mut from = 0;
    for &end in ends {
        let length = end.saturating_sub(from);
        present.extend(std::iter::repeat_n(i16::from(length > 0), length.max(1)));
        repeated.push(0);
        repeated.extend(std::iter::repeat_n(1, length.saturating_sub(1)));
        from = end;
    }
    (present, repeated)
}
