//! Machine and software, as far as they are known.

use super::view::Fact;

/// A fact.
pub fn fact(name: &str, value: impl std::fmt::Display) -> Fact {
    Fact { name: name.into(), value: value.to_string() }
}

/// Software, system, processor and threads.
pub fn environment() -> Vec<Fact> {
    let mut facts = vec![
        fact("software", format!("hbpca {}", env!("CARGO_PKG_VERSION"))),
        fact("system", format!("{} on {}", std::env::consts::OS, std::env::consts::ARCH)),
    ];
    if let Some(processor) = processor() {
        facts.push(fact("processor", processor));
    }
    facts.push(fact("threads", rayon::current_num_threads()));
    facts
}

/// The processor's name, where the system tells it.
fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
