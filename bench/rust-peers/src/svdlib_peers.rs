//! single-svdlib: restarted Lanczos bidiagonalisation (its default) and the randomised range finder.

use single_svdlib::irlba::{self, IrlbaConfig};
use single_svdlib::randomized;
use single_svdlib::{SvdMat, SvdRec};

use crate::data::Sparse;
use crate::{Fit, Found};

pub fn irlba(data: Sparse) -> Fit {
    let a = matrix(data);
    Box::new(move |k| {
        let config = IrlbaConfig::new(k).tol(1e-6).seed(0).allow_unconverged();
        let svd = irlba::svd_with(&a, &config, None)?;
        // One vector at a time: each product reads all data.
        let passes = Some(svd.diagnostics.matvecs);
        let warning = (!svd.converged()).then(|| "not converged".to_owned());
        Ok(Found { components: components(&svd), passes, warning })
    })
}

pub fn randomized(data: Sparse) -> Fit {
    let a = matrix(data);
    Box::new(move |k| {
        let svd = randomized::svd_seed(&a, k, 0)?;
        Ok(Found { components: components(&svd), passes: None, warning: None })
    })
}

fn matrix(data: Sparse) -> SvdMat<f32> {
    SvdMat::new((data.n, data.d), data.starts, data.columns, data.values)
}

fn components(svd: &SvdRec<f32>) -> Vec<f64> {
    svd.vt.iter().map(|&x| f64::from(x)).collect()
}
