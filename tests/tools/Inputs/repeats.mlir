// A plan as form-kernels no longer makes it: elements that lie together in the result
// belong to many groups, and the statistics of each are computed for every tile.
#conv = loc("first"("GroupNormalization"))
#mul = loc("second"("Mul"))
module attributes {graph.device = "cpu", graph.precision = "fp32", graph.stage = "kernels"} {
  func.func @main(%x: tensor<1x8x12x32x32xf32> {graph.name = "x"}, %scale: tensor<96xf32> {graph.name = "s"}) -> (tensor<1x32x32x96xf32> {graph.name = "y"}) {
    %y = graph.kernel "normalize_mul"(%x, %scale) : (tensor<1x8x12x32x32xf32>, tensor<96xf32>) -> tensor<1x32x32x96xf32> {
    ^bb0(%0: tensor<1x8x12x32x32xf32>, %1: tensor<96xf32>):
      %2 = graph.normalize %0 {axes = array<i64: 2, 3, 4>, epsilon = 1.0e-5 : f64} : (tensor<1x8x12x32x32xf32>) -> tensor<1x8x12x32x32xf32>
      %3 = graph.reshape %2 : (tensor<1x8x12x32x32xf32>) -> tensor<1x96x32x32xf32>
      %4 = graph.transpose %3 {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x96x32x32xf32>) -> tensor<1x32x32x96xf32>
      %5 = graph.mul %4, %1 : (tensor<1x32x32x96xf32>, tensor<96xf32>) -> tensor<1x32x32x96xf32>
      graph.yield %5 : tensor<1x32x32x96xf32>
    } loc(fused[#conv, #mul])
    return %y : tensor<1x32x32x96xf32>
  }
}
