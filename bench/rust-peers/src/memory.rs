//! Resident memory of this process, from what the Linux kernel keeps; 0 elsewhere.

/// Now.
pub fn resident_mb() -> f64 {
    of_status("VmRSS:")
}

/// Let the peak begin anew, so that reading does not count. Where the kernel does not offer it, the peak stays the process's.
pub fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// At most, since `forget_peak`.
pub fn peak_mb() -> f64 {
    of_status("VmHWM:")
}

fn of_status(key: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    let kilobytes = line.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse::<f64>().ok());
    kilobytes.unwrap_or(0.0) / 1024.0
}
