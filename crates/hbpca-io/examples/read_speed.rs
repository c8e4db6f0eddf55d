//! Seconds to read each file named on the command line: `read_speed [--repeat N] FILE…`, one line a file:
//! name, seconds of the fastest reading, rows, columns, entries, separated by tabs.

use std::time::Instant;

use hbpca_io::{Input, ReadError, ReadOptions, read};

fn main() -> Result<(), ReadError> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut repeat = 5;
    if arguments.len() > 1 && arguments[0] == "--repeat" {
        repeat = arguments[1].parse().unwrap_or(repeat).max(1);
        arguments.drain(..2);
    }
    for file in arguments {
        let mut fastest = f64::INFINITY;
        let mut about = (0, 0, 0);
        for _ in 0..repeat {
            let start = Instant::now();
            let data = read(Input::path(&file), &ReadOptions::default())?;
            fastest = fastest.min(start.elapsed().as_secs_f64());
            about = (data.matrix.n_rows(), data.matrix.n_cols(), data.matrix.nnz());
        }
        println!("{file}\t{fastest:.4}\t{}\t{}\t{}", about.0, about.1, about.2);
    }
    Ok(())
}
