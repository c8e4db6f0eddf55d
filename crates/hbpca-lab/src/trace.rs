//! Histories of fits, as `--trace` writes them: CSV with a header, or JSON lines.

use std::path::Path;

use hbpca::Record;

use crate::LabError;

/// Reads a history; JSON lines begin with a brace, anything else is CSV.
pub fn read_trace(path: &Path) -> Result<Vec<Record>, LabError> {
    let text = std::fs::read_to_string(path).map_err(LabError::io(path))?;
    let file = path.display().to_string();
    let records =
        if text.trim_start().starts_with('{') { json_lines(&file, &text) } else { csv(&file, &text) }?;
    if records.is_empty() {
        return Err(LabError::description(
            file,
            "no line of a history is in it; write one by `hbpca fit --trace`",
        ));
    }
    Ok(records)
}

fn json_lines(file: &str, text: &str) -> Result<Vec<Record>, LabError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let record = |(i, line): (usize, &str)| {
        serde_json::from_str(line)
            .map_err(|error| LabError::description(format!("{file}:{}", i + 1), error.to_string()))
    };
    lines.map(record).collect()
}

fn csv(file: &str, text: &str) -> Result<Vec<Record>, LabError> {
    let mut lines = text.lines().enumerate();
    let header: Vec<&str> =
        lines.next().map_or_else(Vec::new, |(_, line)| line.split(',').map(str::trim).collect());
    let column = |name: &str| header.iter().position(|x| *x == name);
    for name in ["passes", "seconds", "theta", "residual"] {
        if column(name).is_none() {
            let message = format!("no column `{name}`: a history has passes, seconds, theta and residual");
            return Err(LabError::description(format!("{file}:1"), message));
        }
    }
    let mut records = Vec::new();
    for (i, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let number = |name: &str| -> Result<Option<f64>, LabError> {
            let Some(cell) = column(name).and_then(|at| cells.get(at)).filter(|cell| !cell.is_empty()) else {
                return Ok(None);
            };
            let wrong = || {
                LabError::description(format!("{file}:{}", i + 1), format!("{name} = `{cell}` is no number"))
            };
            cell.parse().map(Some).map_err(|_| wrong())
        };
        let needed = |name: &str| {
            number(name)?.ok_or_else(|| {
                LabError::description(format!("{file}:{}", i + 1), format!("{name} is missing"))
            })
        };
        let mut record = Record::default();
        record.passes = needed("passes")?;
        record.full_passes = number("full_passes")?.unwrap_or(0.0) as u64;
        record.seconds = needed("seconds")?;
        record.theta = needed("theta")?;
        record.residual = needed("residual")?;
        record.eta = number("eta")?;
        record.beta = number("beta")?;
        record.lambda2 = number("lambda2")?;
        record.error = number("error")?;
        records.push(record);
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Record>, LabError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        std::fs::write(&path, text).unwrap();
        read_trace(&path)
    }

    #[test]
    fn both_forms_give_the_same_history() {
        let mut record = Record::default();
        (record.passes, record.full_passes, record.seconds) = (2.5, 2, 0.25);
        (record.theta, record.residual, record.eta) = (3.0, 1e-3, Some(0.5));
        let json = serde_json::to_string(&record).unwrap();
        let csv = "passes,full_passes,seconds,theta,residual,eta,beta\n2.5,2,0.25,3,1e-3,0.5,\n";
        assert_eq!(read(&json).unwrap(), std::slice::from_ref(&record));
        assert_eq!(read(csv).unwrap(), [record]);
    }

    #[test]
    fn what_is_no_history_is_refused_with_its_place() {
        let text = |content: &str| read(content).unwrap_err().to_string();
        assert!(text("a,b\n1,2\n").contains("trace:1: no column `passes`"));
        assert!(
            text("passes,seconds,theta,residual\n1,x,3,4\n").contains("trace:2: seconds = `x` is no number")
        );
        assert!(text("passes,seconds,theta,residual\n1,,3,4\n").contains("trace:2: seconds is missing"));
        assert!(text("passes,seconds,theta,residual\n").contains("no line of a history"));
        assert!(text("{\"passes\": 1}\n").contains("trace:1: missing field"));
    }
}
