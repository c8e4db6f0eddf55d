"""Pictures of a fitted model: a card for notebooks, and two plots through matplotlib."""

from __future__ import annotations

from html import escape

WIDTH, HEIGHT, MOST_BARS = 320, 80, 64


def card(pca) -> str:
    """Spectrum and certificate as HTML."""
    summary = (
        f"{pca.n_components_} components of {pca.n_features_in_} features carry "
        f"{100 * pca.explained_variance_ratio_.sum():.2f} % of the variance; solver {pca.solver_}, "
        f"{pca.n_passes_:.1f} passes, {pca.outcome_}."
    )
    return (
        '<div style="font-family:sans-serif;font-size:90%;margin:.5em 0;max-width:48em">'
        f"<div>{escape(summary)}</div>{_spectrum(pca.explained_variance_ratio_)}"
        f"<div>{escape(str(pca.certificate_))}.</div></div>"
    )


def _spectrum(ratios) -> str:
    """Bars of the leading shares, the largest filling the height."""
    shown = ratios[:MOST_BARS]
    top = max(float(shown[0]), 1e-300)
    step = WIDTH / len(shown)
    bars = "".join(
        f'<rect x="{i * step:.1f}" y="{HEIGHT * (1 - float(r) / top):.1f}" width="{0.8 * step:.1f}" '
        f'height="{HEIGHT * float(r) / top:.1f}"><title>component {i}: {float(r):.4%}</title></rect>'
        for i, r in enumerate(shown)
    )
    return (
        f'<svg role="img" aria-label="explained variance" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" fill="#4477aa" style="display:block;margin:.5em 0">{bars}</svg>'
        f"<div>shares of the variance, from {float(shown[0]):.2%} down to {float(shown[-1]):.2%}"
        f"{f' for the first {len(shown)}' if len(shown) < len(ratios) else ''}</div>"
    )


def _axes(ax):
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install matplotlib") from error
    return plt.subplots()[1]


def scree(pca, ax=None):
    """Shares of the variance, and their running sum."""
    ax = _axes(ax)
    numbers = range(1, pca.n_components_ + 1)
    ax.bar(numbers, pca.explained_variance_ratio_, label="each")
    ax.plot(numbers, pca.explained_variance_ratio_.cumsum(), "o-", color="C1", label="together")
    ax.set(xlabel="component", ylabel="share of the variance", ylim=(0, None))
    ax.legend()
    return ax


def convergence(pca, ax=None):
    """The relative residual against passes, and the tolerance."""
    ax = _axes(ax)
    records = [record for record in pca.history_ if record["theta"] > 0]
    ax.semilogy([r["passes"] for r in records], [r["residual"] / r["theta"] for r in records], "o-", label=pca.solver_)
    tol = pca._fitted.tol
    ax.axhline(tol, color="grey", linestyle="--", label=f"tol = {tol:g}")
    ax.set(xlabel="passes over the data", ylabel="residual / θ")
    ax.legend()
    return ax
