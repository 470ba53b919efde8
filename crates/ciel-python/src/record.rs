//! How a class of Python is declared that only carries values.
//!
//! Each field holds a Python object, so that reading an attribute costs one load. Such a class is
//! built with all its fields in their order; it can be compared, printed, matched and pickled.

/// Declares a frozen class whose attributes are these fields, in this order.
macro_rules! record {
    (
        $(#[$about:meta])*
        $name:ident {
            $(@const $constant:ident: $kind:ty = $value:expr;)*
            $($(#[$doc:meta])* $field:ident: $class:ty,)+
        }
    ) => {
        $(#[$about])*
        #[pyo3::pyclass(frozen, get_all, module = "ciel._native")]
        pub struct $name {
            $($(#[$doc])* pub $field: pyo3::Py<$class>,)+
        }

        impl $name {
            fn fields<'py>(
                &self,
                py: pyo3::Python<'py>,
            ) -> pyo3::PyResult<pyo3::Bound<'py, pyo3::types::PyTuple>> {
                pyo3::types::PyTuple::new(py, [$(self.$field.bind(py).as_any()),+])
            }
        }

        #[allow(clippy::too_many_arguments)]
        #[pyo3::pymethods]
        impl $name {
            $(
                #[classattr]
                #[allow(non_upper_case_globals)]
                const $constant: $kind = $value;
            )*

            #[classattr]
            fn __match_args__(
                py: pyo3::Python<'_>,
            ) -> pyo3::PyResult<pyo3::Bound<'_, pyo3::types::PyTuple>> {
                pyo3::types::PyTuple::new(py, [$(stringify!($field)),+])
            }

            #[new]
            fn new($($field: pyo3::Py<$class>),+) -> $name {
                $name { $($field),+ }
            }

            fn __eq__(
                &self,
                py: pyo3::Python<'_>,
                other: &pyo3::Bound<'_, $name>,
            ) -> pyo3::PyResult<bool> {
                self.fields(py)?.eq(other.get().fields(py)?)
            }

            fn __reduce__<'py>(
                slf: &pyo3::Bound<'py, $name>,
            ) -> pyo3::PyResult<(
                pyo3::Bound<'py, pyo3::types::PyType>,
                pyo3::Bound<'py, pyo3::types::PyTuple>,
            )> {
                Ok((slf.get_type(), slf.get().fields(slf.py())?))
            }

            fn __repr__(&self, py: pyo3::Python<'_>) -> pyo3::PyResult<String> {
                let fields = [$({
                    let value = self.$field.bind(py).repr()?;
                    format!("{}={value}", stringify!($field))
                }),+];
                Ok(format!("{}({})", stringify!($name), fields.join(", ")))
            }
        }
    };
}
pub(crate) use record;
