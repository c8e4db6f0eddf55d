//! The paper's analysis, executable.
