// SPDX-License-Identifier: GPL-2.0-only
// parquet.mjs MODULES FILE: the rows of a Parquet file as hyparquet reads them, and its columns: one JSON document.
// Integers are texts of digits: they may exceed 2^53.
const [modules, path] = process.argv.slice(2)
const { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } = await import(`${modules}/hyparquet/src/node.js`)
const { compressors } = await import(`${modules}/hyparquet-compressors/src/index.js`)

const file = await asyncBufferFromFile(path)
const metadata = await parquetMetadataAsync(file)
const rows = await parquetReadObjects({ file, metadata, compressors })
const columns = metadata.schema.slice(1).map((c) => [c.name, c.type, c.logical_type?.type ?? null])
const encodings = metadata.row_groups.map((g) => g.columns.map((c) => c.meta_data.encodings))
console.log(JSON.stringify({ columns, encodings, rows: rows.map((r) => Object.values(r)) },
	(_, v) => (typeof v === 'bigint' ? v.toString() : v)))
