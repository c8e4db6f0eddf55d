"""Handwritten digits, step by step. Lines that start with `#:` are what the line above prints; a test compares them."""

# %% 1797 pictures of 8×8 pixels, which come with scikit-learn
from sklearn.datasets import load_digits

from hbpca import PCA, solve, theory

X, y = load_digits(return_X_y=True)
print(X.shape)
#: (1797, 64)

# %% Ten components, and what is proved about them
pca = PCA(n_components=10).fit(X)
print(pca.explained_variance_ratio_.round(3))
#: [0.149 0.136 0.118 0.084 0.058 0.049 0.043 0.037 0.034 0.031]
print(pca.outcome_, pca.certificate_.gap_is_proved, pca.certificate_.worst < 1e-11)
#: converged True True

# %% The same numbers as scikit-learn's
from sklearn.decomposition import PCA as Reference

reference = Reference(n_components=10, svd_solver="full").fit(X)
print(abs(pca.components_ - reference.components_).max() < 1e-10)
#: True

# %% How many components carry 90 % of the variance?
print(PCA(n_components=0.9).fit(X).n_components_)
#: 21

# %% Two dimensions, whitened, for a picture
scores = PCA(n_components=2, whiten=True).fit_transform(X)
print(scores.std(axis=0, ddof=1).round(6))
#: [1. 1.]

# %% The paper's method on the same data: one component, mini-batches of a tenth of the rows
solution = solve(X, "vr-hb-power", batch="10%", epoch=20, tol=1e-6)
print(solution.outcome, abs(solution.components[0] @ pca.components_[0]).round(9))
#: converged 1.0

# %% What the theory says about its step size
first, second = pca.certificate_.eigenvalues[:2]
variance = theory.gradient_variance(X, batch=180)
problem = theory.Problem(first, second, variance, epoch=20)
best = theory.best_step_size(problem)
best_rate, full_rate = (theory.contraction(problem, eta).rate for eta in (best, 1.0))
print(f"{best_rate:.2f} an epoch with the best step, {full_rate:.2f} with η = 1")
#: 0.06 an epoch with the best step, 0.77 with η = 1
