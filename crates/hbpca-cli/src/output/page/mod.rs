//! The page of `hbpca demo`: one file without anything to load, in light and dark, with a text for every picture.

mod chart;
mod scree;

use super::number;
use chart::{LineChart, Series};

/// One solver's run, ready to be shown.
pub struct Run {
    /// The solver.
    pub name: &'static str,
    /// Its parameters in words.
    pub parameters: String,
    /// Passes over the data.
    pub passes: f64,
    /// Seconds.
    pub seconds: f64,
    /// 1 − (wᵀu₁)² of the answer.
    pub error: f64,
    /// How it ended.
    pub outcome: String,
    /// Passes and error at every certified iterate.
    pub curve: Vec<(f64, f64)>,
}

/// All that the page shows.
pub struct Page {
    /// The data in a sentence.
    pub data: String,
    /// Where the data is from.
    pub source: String,
    /// What is demanded of the solvers, in a sentence.
    pub task: String,
    /// One run a solver.
    pub runs: Vec<Run>,
    /// The leading eigenvalues.
    pub eigenvalues: Vec<f64>,
    /// Their shares of the total variance.
    pub ratios: Vec<f64>,
}

const STYLE: &str = include_str!("style.css");

impl Page {
    /// The page as HTML.
    pub fn render(&self) -> String {
        let chart = LineChart {
            title: "Error against passes over the data",
            description: self.curves_in_words(),
            x_label: "passes over the data",
            y_label: "1 − (wᵀu₁)²",
            series: self.runs.iter().map(|run| Series { name: run.name, points: &run.curve }).collect(),
        };
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>hbpca demo</title>\n<style>\n{STYLE}</style>\n</head>\n\
             <body>\n<main>\n<h1>hbpca demo</h1>\n<p>{data}</p>\n<p>{task}</p>\n\
             <h2>Every solver on the same data</h2>\n{table}\
             <h2>Convergence</h2>\n{chart}\
             <h2>Spectrum</h2>\n{scree}\
             </main>\n<footer>\n<p>{source}</p>\n<p>Written by hbpca {version}.</p>\n</footer>\n</body>\n</html>\n",
            data = escape(&self.data),
            task = escape(&self.task),
            table = self.table(),
            chart = chart.render(),
            scree = scree::render(&self.eigenvalues, &self.ratios),
            source = escape(&self.source),
            version = env!("CARGO_PKG_VERSION"),
        )
    }

    fn table(&self) -> String {
        let row = |run: &Run| {
            format!(
                "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
                 <td class=\"n\">{}</td><td>{}</td></tr>\n",
                escape(run.name),
                escape(&run.parameters),
                number::short(run.passes),
                number::seconds(run.seconds),
                number::small(run.error),
                escape(&run.outcome),
            )
        };
        let rows = self.runs.iter().map(row).collect::<Vec<_>>().concat();
        format!(
            "<div class=\"wide\"><table>\n<thead><tr><th scope=\"col\">solver</th><th scope=\"col\">parameters</th>\
             <th scope=\"col\" class=\"n\">passes</th><th scope=\"col\" class=\"n\">time</th>\
             <th scope=\"col\" class=\"n\">error</th><th scope=\"col\">outcome</th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
        )
    }

    fn curves_in_words(&self) -> String {
        let ends = self.runs.iter().map(|run| {
            format!(
                "{} reaches {} after {} passes",
                run.name,
                number::small(run.error),
                number::short(run.passes)
            )
        });
        format!("Lines fall from the upper left; {}.", ends.collect::<Vec<_>>().join("; "))
    }
}

/// Text that is safe between tags and in attributes.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_whole_and_loads_nothing() {
        let run = |name, error| Run {
            name,
            parameters: "η < 1".into(),
            passes: 12.0,
            seconds: 0.5,
            error,
            outcome: "converged".into(),
            curve: vec![(1.0, 0.5), (12.0, error)],
        };
        let page = Page {
            data: "Digits & more".into(),
            source: "UCI".into(),
            task: "Find u₁".into(),
            runs: vec![run("power", 1e-9), run("oja", 0.0)],
            eigenvalues: vec![3.0, 1.0],
            ratios: vec![0.5, 0.25],
        }
        .render();
        assert!(page.contains("Digits &amp; more") && page.contains("η &lt; 1"));
        // Two pictures with a text each; the swatches of the legend stand beside their names and are hidden from readers.
        assert_eq!((page.matches("role=\"img\"").count(), page.matches("<desc").count()), (2, 2));
        assert_eq!(page.matches("<svg").count(), 2 + page.matches("aria-hidden").count());
        assert!(page.contains("power reaches 1.0e-9 after 12 passes"));
        for fetched in ["src=", "url(", "@import", "<link", "<script"] {
            assert!(!page.contains(fetched), "{fetched}");
        }
        for tag in ["html", "head", "body", "main", "table", "svg", "footer", "figure"] {
            assert_eq!(
                page.matches(&format!("<{tag}")).count(),
                page.matches(&format!("</{tag}>")).count(),
                "{tag}"
            );
        }
    }
}
