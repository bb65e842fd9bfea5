//! Batches into a Parquet file.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use super::{Batch, Column, Kind, Packing, Spec, Symbol, Texts};

/// Rows to a row group: small enough to hold one of each input of a merge in memory, large enough
/// that a dictionary pays.
pub(crate) const ROWS_PER_GROUP: usize = 1 << 17;
/// Higher levels gain under two per cent here and take several times as long.
const ZSTD_LEVEL: i32 = 9;

/// A table's file on its way to disk; rows must come sorted by key.
pub(crate) struct TableFile<W: Write + Send> {
    writer: SerializedFileWriter<W>,
}

impl<W: Write + Send> TableFile<W> {
    pub(crate) fn new(spec: &Spec, to: W) -> Result<TableFile<W>, ParquetError> {
        let schema = Arc::new(parse_message_type(&spec.message())?);
        let writer = SerializedFileWriter::new(to, schema, Arc::new(properties(spec)?))?;
        Ok(TableFile { writer })
    }

    /// One batch is one row group.
    pub(crate) fn write(&mut self, batch: &Batch, texts: &Texts) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for (spec, column) in batch.spec.columns.iter().zip(&batch.columns) {
            let Some(mut to) = group.next_column()? else { break };
            write_column(&mut to, spec.kind, column, texts)?;
            to.close()?;
        }
        group.close().map(drop)
    }

    /// Writes the footer and gives back what was written to.
    pub(crate) fn finish(self) -> Result<W, ParquetError> {
        self.writer.into_inner()
    }
}

fn properties(spec: &Spec) -> Result<WriterProperties, ParquetError> {
    let mut builder = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
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

fn write_column(
    to: &mut SerializedColumnWriter<'_>,
    kind: Kind,
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
            let values: Vec<i64> = values.iter().flatten().map(|&value| value as i64).collect();
            to.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
        }
        Column::Text(symbols) => {
            let (values, levels) = spelled(symbols, texts);
            let levels = (kind == Kind::MaybeText).then_some(levels.as_slice());
            to.typed::<ByteArrayType>().write_batch(&values, levels, None)?;
        }
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
