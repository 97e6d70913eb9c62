//! The JSON form that types of other modules have in the journal.
//!
//! Each type here mirrors a type of another module, field by field (`#[serde(remote)]`). The order
//! of the mirror's fields is the order of the keys in the JSON. If a field of a plan, a device or a
//! route gets a new name, the build fails until the mirror has the new name too. `tests/golden`
//! contains the expected JSON.
//!
//! Some types, such as addresses, CNI results and the names of pods, have no mirror. The journal
//! uses the serde implementations of these types.

mod attachment;
mod device;
mod route;

use std::marker::PhantomData;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use device::{Function, LinkState, Netdev, Rates, Vlan};
use route::NextHop;

pub(super) use attachment::Attachment;
pub(super) use device::Device;
pub(super) use route::Route;

/// The JSON form of a type of another module.
pub(super) trait Form {
    /// The type of the other module.
    type Of;

    fn write<S: Serializer>(value: &Self::Of, out: S) -> Result<S::Ok, S::Error>;

    fn read<'de, D: Deserializer<'de>>(input: D) -> Result<Self::Of, D::Error>;
}

/// Implements [`Form`] with the functions that `#[serde(remote)]` derives.
macro_rules! forms {
    ($($form:ident of $of:ty,)*) => {$(
        impl Form for $form {
            type Of = $of;

            fn write<S: Serializer>(value: &$of, out: S) -> Result<S::Ok, S::Error> {
                $form::serialize(value, out)
            }

            fn read<'de, D: Deserializer<'de>>(input: D) -> Result<$of, D::Error> {
                $form::deserialize(input)
            }
        }
    )*};
}

forms! {
    Attachment of crate::plan::Attachment,
    Device of crate::baseline::DeviceState,
    Netdev of crate::baseline::NetdevState,
    Function of crate::kernel::VfState,
    Vlan of crate::kernel::VfVlan,
    LinkState of crate::kernel::VfLinkState,
    Rates of crate::kernel::VfRates,
    Route of crate::kernel::DefaultRoute,
    NextHop of crate::kernel::NextHop,
}

/// A reference that serializes in the form `F`.
struct Written<'a, F: Form>(&'a F::Of);

impl<F: Form> Serialize for Written<'_, F> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        F::write(self.0, out)
    }
}

/// A value that deserializes from the form `F`.
struct Read<F: Form>(F::Of);

impl<'de, F: Form> Deserialize<'de> for Read<F> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        F::read(input).map(Read)
    }
}

/// A list of values in the form `F`, for `#[serde(with)]`.
pub(super) struct List<F>(PhantomData<F>);

impl<F: Form> List<F> {
    pub(super) fn serialize<S: Serializer>(list: &[F::Of], out: S) -> Result<S::Ok, S::Error> {
        out.collect_seq(list.iter().map(Written::<F>))
    }

    pub(super) fn deserialize<'de, D, L>(input: D) -> Result<L, D::Error>
    where
        D: Deserializer<'de>,
        L: From<Vec<F::Of>>,
    {
        let list = Vec::<Read<F>>::deserialize(input)?;
        let list: Vec<F::Of> = list.into_iter().map(|read| read.0).collect();
        Ok(list.into())
    }
}

/// An optional value in the form `F`, for `#[serde(with)]`.
struct Maybe<F>(PhantomData<F>);

impl<F: Form> Maybe<F> {
    fn serialize<S: Serializer>(value: &Option<F::Of>, out: S) -> Result<S::Ok, S::Error> {
        value.as_ref().map(Written::<F>).serialize(out)
    }

    fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Option<F::Of>, D::Error> {
        Ok(Option::<Read<F>>::deserialize(input)?.map(|read| read.0))
    }
}

#[cfg(test)]
mod tests;
