//! `hbpca plan`: what a fit on many ranks will cost.

use hbpca::RowChunks;
use hbpca::operator::Shape;
use hbpca::plan::{Forecast, Network};
use hbpca_io::{ByteSize, Storage};
use serde::Serialize;

use crate::args::PlanArgs;
use crate::exit::{Exit, Failure};
use crate::output::say::Verbosity;
use crate::output::table::{Side, Table};
use crate::output::{self, json, number};
use crate::plan::Source;

/// n and d, and the stored entries of compressed rows.
#[derive(Clone, Copy)]
struct Extent {
    n: usize,
    d: usize,
    entries: Option<usize>,
}

#[derive(Serialize)]
struct Row {
    solver: &'static str,
    rounds: f64,
    seconds: f64,
    computing_seconds: f64,
    communicating_seconds: f64,
    memory_per_rank: u64,
    /// What most of the time goes into: `computing` or `communicating`; or `memory` where a rank would need more than it may take.
    limit: &'static str,
}

#[derive(Serialize)]
struct Object<'a> {
    n: usize,
    d: usize,
    nnz: Option<usize>,
    k: usize,
    ranks: usize,
    latency: f64,
    bandwidth: f64,
    solvers: &'a [Row],
}

/// Runs `hbpca plan`.
pub fn run(args: &PlanArgs) -> Result<Exit, Failure> {
    let (name, extent) = match &args.shape {
        Some(shape) if args.data.data.is_empty() => (shape.clone(), parse_shape(shape)?),
        Some(_) => return Err(Failure::Usage("give data or --shape, not both".into())),
        None if args.data.data.is_empty() => {
            let text = "name the data, or give its --shape, such as 1e9x1000 or 1e8x1e6x1e10 (rows x columns x entries)";
            return Err(Failure::Usage(text.into()));
        }
        None => measure(args)?,
    };
    let Extent { n, d, entries } = extent;
    if args.ranks > n {
        return Err(Failure::Usage(format!("{n} rows for {} ranks: give at most {n}", args.ranks)));
    }
    if args.k == 0 || args.k > n.min(d) {
        return Err(Failure::Usage(format!("k = {}: give between 1 and {}", args.k, n.min(d))));
    }
    let network = Network { latency: args.latency.0, bandwidth: args.bandwidth.0 as f64 };
    let forecasts = Forecast::on_ranks(Shape { n, d }, entries, args.k, args.ranks, network);
    let allowed = args.memory.map(|ByteSize(bytes)| bytes);
    let rows: Vec<Row> = forecasts.iter().map(|forecast| row(forecast, allowed)).collect();
    if args.json {
        let Network { latency, bandwidth } = network;
        let (k, ranks) = (args.k, args.ranks);
        json::print(&Object { n, d, nnz: entries, k, ranks, latency, bandwidth, solvers: &rows })?;
    } else {
        output::print(&report(&name, extent, args, &rows))?;
    }
    Ok(Exit::Success)
}

fn row(forecast: &Forecast, allowed: Option<u64>) -> Row {
    let limit = if allowed.is_some_and(|allowed| forecast.memory > allowed) {
        "memory"
    } else if forecast.communicating > forecast.computing {
        "communicating"
    } else {
        "computing"
    };
    Row {
        solver: forecast.solver.name(),
        rounds: forecast.rounds,
        seconds: forecast.seconds(),
        computing_seconds: forecast.computing,
        communicating_seconds: forecast.communicating,
        memory_per_rank: forecast.memory,
        limit,
    }
}

/// From headers where they tell, else by reading.
fn measure(args: &PlanArgs) -> Result<(String, Extent), Failure> {
    let source = Source::find(&args.data)?;
    let name = source.name.clone();
    let extent = |n, d, sparse: bool, nnz| Extent { n, d, entries: sparse.then_some(nnz) };
    if let Storage::OnDisk(rows) = source.storage()? {
        return Ok((name, extent(rows.n_rows(), rows.n_cols(), rows.is_sparse(), rows.nnz())));
    }
    let matrix = source.read(Verbosity::Normal)?.data.matrix;
    Ok((name, extent(matrix.n_rows(), matrix.n_cols(), matrix.is_sparse(), matrix.nnz())))
}

/// `1e9x1000` or `1e8x1e6x1e10`.
fn parse_shape(text: &str) -> Result<Extent, Failure> {
    let wrong = || {
        let way_out =
            "give rows x columns, such as 1e9x1000, and for sparse data the entries, too: 1e8x1e6x1e10";
        Failure::Usage(format!("--shape {text}: {way_out}"))
    };
    let number = |part: &str| {
        let value: f64 = part.trim().parse().ok()?;
        ((1.0..=1e15).contains(&value) && value.fract() == 0.0).then_some(value as usize)
    };
    let parts: Vec<usize> = text.split(['x', '×']).map(number).collect::<Option<_>>().ok_or_else(wrong)?;
    match parts[..] {
        [n, d] => countable(text, n, d).map(|()| Extent { n, d, entries: None }),
        [n, d, entries] if entries as u128 > n as u128 * d as u128 => Err(Failure::Usage(format!(
            "--shape {text}: {entries} entries do not fit {n} x {d}; give at most rows x columns"
        ))),
        [n, d, entries] => countable(text, entries, 1).map(|()| Extent { n, d, entries: Some(entries) }),
        _ => Err(wrong()),
    }
}

/// Refuses numbers whose bytes no file system counts: a forecast of them would be one of something else.
fn countable(text: &str, n: usize, d: usize) -> Result<(), Failure> {
    const MOST: u128 = 1 << 60;
    if n as u128 * d as u128 <= MOST {
        return Ok(());
    }
    let numbers = n as f64 * d as f64;
    Err(Failure::Usage(format!(
        "--shape {text}: {numbers:.1e} numbers are more than any machine counts (at most {:.1e}); give the entries where it is \
         sparse, such as 1e8x1e6x1e10",
        MOST as f64
    )))
}

fn report(name: &str, Extent { n, d, entries }: Extent, args: &PlanArgs, rows: &[Row]) -> String {
    let columns = [
        ("solver", Side::Left),
        ("rounds", Side::Right),
        ("seconds", Side::Right),
        ("computing", Side::Right),
        ("messages", Side::Right),
        ("memory of a rank", Side::Right),
        ("limit", Side::Left),
    ];
    let mut table = Table::new(&columns);
    for row in rows {
        table.row([
            row.solver.to_owned(),
            format!("{:.0}", row.rounds),
            number::seconds(row.seconds),
            number::seconds(row.computing_seconds),
            number::seconds(row.communicating_seconds),
            ByteSize(row.memory_per_rank).to_string(),
            row.limit.to_owned(),
        ]);
    }
    let kind =
        entries.map_or_else(|| "dense".to_owned(), |x| format!("sparse, {} entries", number::count(x)));
    format!(
        "{name}: {} rows × {} columns, {kind}; {} on {}, {} a message, {}/s\n\n{}\nAt the speeds of a nominal machine with four threads a rank, reading \
         the data apart.\n",
        number::count(n),
        number::count(d),
        number::plural(args.k as f64, "component", "components"),
        number::plural(args.ranks as f64, "rank", "ranks"),
        number::seconds(args.latency.0),
        args.bandwidth,
        table.render(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_read_as_people_write_them() {
        let shape = |text: &str| parse_shape(text).map(|x| (x.n, x.d, x.entries)).ok();
        assert_eq!(shape("1e9x1000"), Some((1_000_000_000, 1000, None)));
        assert_eq!(shape("100 × 20 × 300"), Some((100, 20, Some(300))));
        assert_eq!(
            shape("1e15x1e15x1e12"),
            Some((1_000_000_000_000_000, 1_000_000_000_000_000, Some(1_000_000_000_000)))
        );
        for wrong in ["", "5", "0x3", "1.5x2", "axb", "1x2x3x4", "1e99x1", "1e15x1e15", "10x10x101"] {
            assert_eq!(shape(wrong), None, "{wrong}");
        }
    }
}
