"""Plots show the fitted numbers."""

import matplotlib
import pytest
from data import with_spectrum

from hbpca import PCA

matplotlib.use("Agg")


def test_plots_show_the_numbers():
    pca = PCA(3, solver="krylov", tol=1e-10).fit(with_spectrum(500, 20, 20))
    axes = pca.plot_scree()
    assert [bar.get_height() for bar in axes.patches] == pytest.approx(pca.explained_variance_ratio_)
    assert axes.lines[0].get_ydata()[-1] == pytest.approx(pca.explained_variance_ratio_.sum())
    line, tolerance = pca.plot_convergence(axes.figure.add_subplot()).lines
    assert line.get_xdata().tolist() == [record["passes"] for record in pca.history_]
    assert line.get_ydata()[-1] <= tolerance.get_ydata()[0] == 1e-10
