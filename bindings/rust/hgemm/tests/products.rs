//! Products on the CPU against a plain loop, with small integers so that every result is exact.
use hgemm::{Activation, Bf16, Element, Error, Gate, Gemm, Half, Handle, Layout, Op, Status, Uplo, F16};

trait Number: Copy + PartialEq + std::fmt::Debug {
    fn of(value: f32) -> Self;
    fn value(self) -> f32;
}
impl Number for F16 {
    fn of(value: f32) -> F16 {
        F16::from_f32(value)
    }
    fn value(self) -> f32 {
        self.to_f32()
    }
}
impl Number for Bf16 {
    fn of(value: f32) -> Bf16 {
        Bf16::from_f32(value)
    }
    fn value(self) -> f32 {
        self.to_f32()
    }
}
impl Number for f32 {
    fn of(value: f32) -> f32 {
        value
    }
    fn value(self) -> f32 {
        self
    }
}

fn data<T: Number>(count: usize, seed: usize) -> Vec<T> {
    (0..count)
        .map(|i| T::of(((i * 7 + seed + i / 5) % 5) as f32 - 2.0))
        .collect()
}

/// Where element (row, column) lies in a matrix of `ld`.
fn place(layout: Layout, op: Op, ld: usize, row: usize, column: usize) -> usize {
    if (layout == Layout::RowMajor) == (op == Op::None) {
        row * ld + column
    } else {
        column * ld + row
    }
}

fn check_all_layouts<T: Half + Number, U: Element + Number>() {
    let (m, n, k, ld) = (5, 7, 6, 9);
    let mut handle = Handle::host().unwrap();
    for layout in [Layout::RowMajor, Layout::ColMajor] {
        for transa in [Op::None, Op::Transpose] {
            for transb in [Op::None, Op::Transpose] {
                let (a, b) = (data::<T>(8 * ld, 1), data::<T>(8 * ld, 2));
                let before = data::<U>(8 * ld, 3);
                let mut d = before.clone();
                let gemm = Gemm::new(m, n, k)
                    .layout(layout)
                    .transa(transa)
                    .transb(transb)
                    .leading(ld, ld, ld);
                handle
                    .multiply(&gemm.alpha(2.0).beta(-1.0), &a, &b, &mut d)
                    .unwrap();
                let mut expected = before.clone();
                for i in 0..m {
                    for j in 0..n {
                        let sum: f32 = (0..k)
                            .map(|p| {
                                a[place(layout, transa, ld, i, p)].value()
                                    * b[place(layout, transb, ld, p, j)].value()
                            })
                            .sum();
                        let at = place(layout, Op::None, ld, i, j);
                        expected[at] = U::of(2.0 * sum - before[at].value());
                    }
                }
                assert_eq!(d, expected, "{:?} {:?} {:?}", layout, transa, transb);
            }
        }
    }
}

#[test]
fn all_layouts_and_types() {
    check_all_layouts::<F16, F16>();
    check_all_layouts::<F16, f32>();
    check_all_layouts::<Bf16, Bf16>();
    check_all_layouts::<Bf16, f32>();
}

fn check_symmetric<T: Half + Number, U: Element + Number>() {
    let (n, k, ld) = (5, 6, 9);
    let mut handle = Handle::host().unwrap();
    for layout in [Layout::RowMajor, Layout::ColMajor] {
        for trans in [Op::None, Op::Transpose] {
            for uplo in [Uplo::Upper, Uplo::Lower, Uplo::Both] {
                let (a, before) = (data::<T>(8 * ld, 1), data::<U>(8 * ld, 3));
                let gemm = Gemm::symmetric(n, k, trans)
                    .layout(layout)
                    .uplo(uplo)
                    .leading(ld, ld, ld)
                    .alpha(0.5);
                let mut d = before.clone();
                handle.multiply(&gemm, &a, &a, &mut d).unwrap();
                let at = |i, p| a[place(layout, trans, ld, i, p)].value();
                let mut expected = before;
                for i in 0..n {
                    for j in 0..n {
                        let sum: f32 = (0..k).map(|p| at(i, p) * at(j, p)).sum();
                        if uplo == Uplo::Both || i == j || (i < j) == (uplo == Uplo::Upper) {
                            expected[place(layout, Op::None, ld, i, j)] = U::of(0.5 * sum);
                        }
                    }
                }
                assert_eq!(d, expected, "{:?} {:?} {:?}", layout, trans, uplo);
            }
        }
    }
}

#[test]
fn symmetric_results() {
    check_symmetric::<F16, F16>();
    check_symmetric::<F16, f32>();
    check_symmetric::<Bf16, Bf16>();
    check_symmetric::<Bf16, f32>();
    let mut handle = Handle::host().unwrap();
    let one = [F16::from_f32(1.0); 4];
    let mut d = [7.0f32; 4];
    // All of D must be there, whichever half is computed.
    let gemm = Gemm::symmetric(2, 2, Op::None).uplo(Uplo::Lower);
    let short = handle.multiply(&gemm, &one, &one, &mut d[..3]).unwrap_err();
    assert_eq!(short.message, "d has 3 elements, must have at least 4");
    let refused = handle
        .multiply(&gemm.activation(Activation::Relu), &one, &one, &mut d)
        .unwrap_err();
    assert!(
        refused.message.contains("args->activation must be 0"),
        "{}",
        refused
    );
    assert_eq!(d, [7.0; 4]);
    let explained = handle.explain::<F16, f32>(&gemm).unwrap();
    assert!(explained.contains("triangle in"), "{}", explained);
}

fn check_gated<T: Half + Number, U: Element + Number>() {
    let (m, n, k, ld) = (8, 12, 6, 13);
    let mut handle = Handle::host().unwrap();
    for (layout, line) in [(Layout::RowMajor, n), (Layout::ColMajor, m)] {
        for block in [1, 2, line / 2] {
            let (a, b, before) = (
                data::<T>(12 * ld, 1),
                data::<T>(12 * ld, 2),
                data::<U>(12 * ld, 3),
            );
            let gate = Gate {
                block,
                limit: 4.0,
                slope: 0.0,
                offset: 1.0,
            };
            let gemm = Gemm::new(m, n, k)
                .layout(layout)
                .activation(Activation::Relu)
                .gate(gate)
                .leading(ld, ld, ld);
            let mut d = before.clone();
            handle.multiply(&gemm, &a, &b, &mut d).unwrap();
            // Element number `at` of a line of the product.
            let sum = |row, at| -> f32 {
                let (i, j) = match layout {
                    Layout::RowMajor => (row, at),
                    Layout::ColMajor => (at, row),
                };
                (0..k)
                    .map(|p| {
                        a[place(layout, Op::None, ld, i, p)].value()
                            * b[place(layout, Op::None, ld, p, j)].value()
                    })
                    .sum()
            };
            let mut expected = before;
            for row in 0..m * n / line {
                for j in 0..line / 2 {
                    let at = j / block * 2 * block + j % block;
                    let (gate, other) = (sum(row, at), sum(row, at + block));
                    expected[row * ld + j] =
                        U::of(gate.max(0.0).min(4.0) * (other.max(-4.0).min(4.0) + 1.0));
                }
            }
            assert_eq!(d, expected, "{:?} {}", layout, block);
        }
    }
}

#[test]
fn gated_results() {
    check_gated::<F16, F16>();
    check_gated::<F16, f32>();
    check_gated::<Bf16, Bf16>();
    check_gated::<Bf16, f32>();
    let mut handle = Handle::host().unwrap();
    let one = [F16::from_f32(1.0); 4];
    let mut d = [7.0f32; 2];
    let gemm = Gemm::new(2, 2, 2).gate(Gate {
        block: 1,
        ..Gate::default()
    });
    let short = handle.multiply(&gemm, &one, &one, &mut d[..1]).unwrap_err();
    assert_eq!(short.message, "d has 1 elements, must have at least 2");
    // The bias is that of the product.
    let short = handle
        .multiply_add_bias(&gemm, &one, &one, &[1.0], &mut d)
        .unwrap_err();
    assert_eq!(short.message, "bias has 1 elements, must have at least 2");
    assert!(handle.multiply(&gemm.beta(1.0), &one, &one, &mut d).is_err());
    assert_eq!(d, [7.0; 2]);
    handle
        .multiply_add_bias(&gemm, &one, &one, &[1.0, 2.0], &mut d)
        .unwrap();
    assert_eq!(d, [12.0; 2]);
}

#[test]
fn bias_and_activation() {
    let mut handle = Handle::host().unwrap();
    let one = F16::from_f32(1.0);
    let mut d = [7.0f32; 4];
    let gemm = Gemm::new(2, 2, 1).activation(Activation::Relu);
    handle
        .multiply_add_bias(&gemm, &[one; 2], &[one; 2], &[-3.0, 2.0], &mut d)
        .unwrap();
    assert_eq!(d, [0.0, 3.0, 0.0, 3.0]);
    let short = handle
        .multiply_add_bias(&gemm, &[one; 2], &[one; 2], &[-3.0], &mut d)
        .unwrap_err();
    assert_eq!(short.message, "bias has 1 elements, must have at least 2");
}

#[test]
fn batches_lie_behind_each_other() {
    let mut handle = Handle::host().unwrap();
    let a: Vec<Bf16> = (1..=3).map(|i| Bf16::from_f32(i as f32)).collect();
    let b = a.clone();
    let mut d = [0.0f32; 3];
    handle
        .multiply(&Gemm::new(1, 1, 1).batch(3), &a, &b, &mut d)
        .unwrap();
    assert_eq!(d, [1.0, 4.0, 9.0]);
    let short = handle
        .multiply(&Gemm::new(1, 1, 1).batch(4), &a, &b, &mut d)
        .unwrap_err();
    assert_eq!(short.message, "a has 3 elements, must have at least 4");
}

#[test]
fn slices_that_are_too_short_are_refused() {
    let mut handle = Handle::host().unwrap();
    let long = [F16(0); 64];
    let gemm = Gemm::new(4, 4, 4).leading(5, 5, 5);
    let refused = |error: Error, text: &str| {
        assert_eq!(error.status, Status::InvalidArgument);
        assert_eq!(error.message, text);
    };
    let mut d = [F16(1); 19];
    refused(
        handle.multiply(&gemm, &long[..18], &long, &mut d).unwrap_err(),
        "a has 18 elements, must have at least 19",
    );
    refused(
        handle.multiply(&gemm, &long, &long[..18], &mut d).unwrap_err(),
        "b has 18 elements, must have at least 19",
    );
    refused(
        handle.multiply(&gemm, &long, &long, &mut d[..18]).unwrap_err(),
        "d has 18 elements, must have at least 19",
    );
    assert!(d.iter().all(|x| x.0 == 1));
    handle.multiply(&gemm, &long[..19], &long[..19], &mut d).unwrap();
    assert_eq!(d[0].0, 0);
    assert!(handle
        .multiply(&Gemm::new(usize::MAX, 2, 2), &long, &long, &mut d)
        .is_err());
    assert!(handle
        .multiply(&Gemm::new(2, 2, 2).batch(usize::MAX), &long, &long, &mut d)
        .is_err());
}

#[test]
fn errors_of_the_library_keep_their_text() {
    let mut handle = Handle::host().unwrap();
    let data = [F16(0); 16];
    let mut d = [0.0f32; 16];
    let error = handle
        .multiply(&Gemm::new(2, 2, 4).leading(3, 2, 2), &data, &data, &mut d)
        .unwrap_err();
    assert_eq!(error.status, Status::InvalidArgument);
    assert!(
        error.to_string().contains("lda) is 3, must be at least k = 4"),
        "{}",
        error
    );
    assert_eq!(Handle::on_device(1000).unwrap_err().status, Status::NoDevice);
}

#[test]
fn empty_products_are_legal() {
    let mut handle = Handle::host().unwrap();
    handle
        .multiply::<F16, f32>(&Gemm::new(0, 3, 2), &[], &[F16(0); 6], &mut [])
        .unwrap();
    let mut d = [5.0f32; 2];
    handle
        .multiply::<F16, f32>(&Gemm::new(1, 2, 0), &[], &[], &mut d)
        .unwrap();
    assert_eq!(d, [0.0, 0.0]);
}

#[test]
fn handles_tell_about_themselves_and_move_to_threads() {
    let mut handle = Handle::host().unwrap();
    assert!(handle.is_host());
    handle.set_sm_count(1).unwrap();
    assert_eq!(handle.sm_count().unwrap(), 1);
    assert_eq!(handle.device().unwrap(), None);
    assert!(!handle.is_batch_invariant().unwrap());
    assert!(handle.workspace_bytes().unwrap() > 0);
    handle.set_tree(true).unwrap();
    assert!(handle.is_batch_invariant().unwrap());
    handle.set_batch_invariant(false).unwrap();
    let gemm = Gemm::new(8, 8, 8);
    assert!(handle.explain::<F16, F16>(&gemm).unwrap().contains("host"));
    handle.workspace_size::<F16, F16>(&gemm).unwrap();
    let thread = std::thread::spawn(move || {
        let mut d = [0.0f32];
        let two = F16::from_f32(2.0);
        handle
            .multiply(&Gemm::new(1, 1, 1), &[two], &[two], &mut d)
            .unwrap();
        d[0]
    });
    assert_eq!(thread.join().unwrap(), 4.0);
    Handle::new().unwrap();
    Handle::with_workspace(1 << 20).unwrap();
}

#[test]
fn conversions_are_exact_or_to_nearest_even() {
    for bits in 0..=u16::MAX {
        let (half, brain) = (F16(bits), Bf16(bits));
        if !half.to_f32().is_nan() {
            assert_eq!(F16::from_f32(half.to_f32()), half);
        }
        if !brain.to_f32().is_nan() {
            assert_eq!(Bf16::from_f32(brain.to_f32()), brain);
        }
    }
    assert_eq!(F16::from_f32(1.0 + 0.00048828125).0, 0x3c00); // half a unit: to even
    assert_eq!(F16::from_f32(1.0 + 3.0 * 0.00048828125).0, 0x3c02);
    assert_eq!(F16::from_f32(65519.0).0, 0x7bff);
    assert_eq!(F16::from_f32(65520.0).0, 0x7c00);
    assert_eq!(F16::from_f32(-2f32.powi(-25)).0, 0x8000);
    assert_eq!(F16::from_f32(3.0 * 2f32.powi(-26)).0, 1);
    assert!(F16::from_f32(f32::NAN).to_f32().is_nan());
    assert!(Bf16::from_f32(f32::NAN).to_f32().is_nan());
    assert_eq!(Bf16::from_f32(1.00390625).0, 0x3f80);
    assert_eq!(Bf16::from_f32(f32::MAX).0, 0x7f80);
}
