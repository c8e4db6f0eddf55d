//! The view model, word for word.

use hbpca::Outcome;
use hbpca_lab::findings::{claims, table1};
use hbpca_lab::race::{Clock, Curve, Lane, Look, Race, Run};
use hbpca_lab::reference::Reference;
use hbpca_lab::report::view::{claim_views, describe, solver_views};

/// A race whose errors fall by a fixed factor a look: no numerics, no rounding to speak of.
fn race(experiment: &str, batch: usize, factors: &[(&str, f64)]) -> Race {
    let lane = |(id, factor): &(&str, f64)| {
        let look = |i: i32| Look {
            passes: 1.0 + 2.0 * f64::from(i),
            seconds: 0.5 * f64::from(i + 1),
            error: 10.0_f64.powf(-factor * f64::from(i)),
            lambda2: Some(1.0),
        };
        let runs: Vec<Run> = (0..2)
            .map(|seed| Run {
                seed,
                eta: Some(0.5),
                outcome: Outcome::Budget,
                looks: (0..10).map(look).collect(),
            })
            .collect();
        let (contender, curve) = (id.parse().unwrap(), Curve::new(&runs));
        Lane { contender, extended: false, eta: Some(0.5), search: None, runs, curve }
    };
    Race {
        experiment: experiment.into(),
        dataset: "ijcnn1".into(),
        title: "ijcnn1".into(),
        thinned_from: None,
        reference: Reference {
            fingerprint: "0123".into(),
            n: 1000,
            d: 3,
            density: 1.0,
            eigenvalues: [1.25, 1.0],
            relative_residual: 1e-16,
            relative_rounding: 1e-15,
            variance_of_one_row: 10.0,
            u1: vec![1.0, 0.0, 0.0],
            further: Vec::new(),
        },
        batch,
        epoch: 1000 / batch,
        passes: 19.0,
        target: 1e-10,
        clock: Clock::Processor,
        lanes: factors.iter().map(lane).collect(),
    }
}

fn races() -> (Race, Race) {
    let small = [
        ("power", 0.25),
        ("power-m:oracle", 0.5),
        ("vr-pca", 1.0),
        ("vr-power-m:oracle", 0.0),
        ("vr-hb-power:oracle", 2.0),
        ("vr-hb-power:adaptive", 1.25),
    ];
    let large = small.map(|(id, factor)| (id, if id == "vr-power-m:oracle" { 1.5 } else { factor }));
    (race("figure1", 10, &small), race("figure2", 50, &large))
}

#[test]
fn claims_are_judged_as_the_errors_say() {
    let (small, large) = races();
    let (views, counts) = claim_views(claims(&[small], &[large], &[]));
    let text: Vec<String> = views
        .iter()
        .map(|view| {
            let cases = view
                .claim
                .cases
                .iter()
                .map(|case| format!("\n    {} {}: {}", case.finding.sign(), case.place, case.numbers));
            format!("{} <- {}{}", view.words, view.claim.sentence, cases.collect::<String>())
        })
        .collect();
    insta::assert_snapshot!("claims", text.join("\n"));
    assert_eq!(counts.iter().map(|count| count.count).sum::<usize>(), views.len());
}

#[test]
fn tables_and_words_show_the_numbers() {
    let (small, large) = races();
    let words = format!("{}\n{:#?}", describe(&small), solver_views([&small, &large].into_iter()));
    insta::assert_snapshot!("words", words);
    insta::assert_snapshot!("table1", table1(&[small], &[large]).markdown());
}
