// A product of three columns, and what is computed of each of its elements.
module attributes {graph.device = "cuda", graph.precision = "fp16", graph.stage = "kernels"} {
  func.func @main(%x: tensor<16384x576xf16> {graph.name = "x"}, %w: tensor<576x3xf16> {graph.name = "w"}) -> (tensor<16384x3xf16> {graph.name = "y"}) {
    %y = graph.kernel "matmul_tanh"(%x, %w) : (tensor<16384x576xf16>, tensor<576x3xf16>) -> tensor<16384x3xf16> {
    ^bb0(%0: tensor<16384x576xf16>, %1: tensor<576x3xf16>):
      %2 = graph.matmul %0, %1 : (tensor<16384x576xf16>, tensor<576x3xf16>) -> tensor<16384x3xf16>
      %3 = graph.tanh %2 : (tensor<16384x3xf16>) -> tensor<16384x3xf16>
      graph.yield %3 : tensor<16384x3xf16>
    }
    return %y : tensor<16384x3xf16>
  }
}
