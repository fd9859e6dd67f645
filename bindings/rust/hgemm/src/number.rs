//! The element types. Conversions from f32 round to nearest even; those to f32 are exact.
use hgemm_sys as sys;

/// An IEEE binary16 number, by its bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct F16(pub u16);

/// A bfloat16 number, by its bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bf16(pub u16);

impl F16 {
    pub fn from_f32(value: f32) -> F16 {
        let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
        let magnitude = value.abs();
        let bits = if magnitude.is_nan() {
            0x7e00
        } else if magnitude >= 65520.0 {
            0x7c00
        } else if magnitude.to_bits() < 113 << 23 {
            // Subnormal. Adding 0.5 leaves a unit of 2^-24, the smallest half, in the last place.
            (magnitude + 0.5).to_bits() - 0.5f32.to_bits()
        } else {
            // The carry of rounding may reach the exponent, and is right there.
            let bits = magnitude.to_bits();
            (bits + 0xfff + (bits >> 13 & 1) - (112 << 23)) >> 13
        };
        F16(sign | bits as u16)
    }

    pub fn to_f32(self) -> f32 {
        let (exponent, fraction) = (self.0 >> 10 & 31, u32::from(self.0 & 0x3ff));
        let magnitude = match exponent {
            0 => fraction as f32 / 16777216.0,
            31 => f32::from_bits(0x7f80_0000 | fraction << 13),
            _ => f32::from_bits((u32::from(exponent) + 112) << 23 | fraction << 13),
        };
        if self.0 & 0x8000 == 0 {
            magnitude
        } else {
            -magnitude
        }
    }
}

impl Bf16 {
    pub fn from_f32(value: f32) -> Bf16 {
        let bits = value.to_bits();
        if value.is_nan() {
            return Bf16((bits >> 16) as u16 | 0x40);
        }
        Bf16(((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16)
    }

    pub fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::F16 {}
    impl Sealed for super::Bf16 {}
    impl Sealed for f32 {}
}

/// What a result or a bias is made of.
pub trait Element: Copy + sealed::Sealed {
    const TYPE: sys::hgemm_type_t;
}

/// What A and B are made of.
pub trait Half: Element {}

impl Element for F16 {
    const TYPE: sys::hgemm_type_t = sys::HGEMM_F16;
}
impl Element for Bf16 {
    const TYPE: sys::hgemm_type_t = sys::HGEMM_BF16;
}
impl Element for f32 {
    const TYPE: sys::hgemm_type_t = sys::HGEMM_F32;
}
impl Half for F16 {}
impl Half for Bf16 {}
