//! A linear layer with bias and ReLU on the CPU: D = relu(X * transpose(W) + bias), row-major bf16.
//!
//!     cargo run --example linear
use hgemm::{Activation, Bf16, Gemm, Handle, Op};

fn main() -> hgemm::Result<()> {
    let (rows, inputs, outputs) = (2, 4, 3);
    let x: Vec<Bf16> = (0..rows * inputs).map(|i| Bf16::from_f32(i as f32)).collect();
    let w: Vec<Bf16> = (0..outputs * inputs)
        .map(|i| Bf16::from_f32((i % 3) as f32 - 1.0))
        .collect();
    let bias = [0.5f32, -20.0, 1.0];
    let mut d = vec![0.0f32; rows * outputs];

    let mut handle = Handle::host()?;
    let layer = Gemm::new(rows, outputs, inputs)
        .transb(Op::Transpose)
        .activation(Activation::Relu);
    println!("{}", handle.explain::<Bf16, f32>(&layer)?);
    handle.multiply_add_bias(&layer, &x, &w, &bias, &mut d)?;
    for row in d.chunks(outputs) {
        println!("{:?}", row);
    }
    Ok(())
}
