// What each kernel does can be counted by hand.
module attributes {graph.device = "cpu", graph.precision = "fp32", graph.stage = "kernels"} {
  func.func @main(%x: tensor<64xf32> {graph.name = "x"}, %a: tensor<8x16xf32> {graph.name = "a"}) -> (tensor<64xf32> {graph.name = "y"}, tensor<8xf32> {graph.name = "s"}) {
    // 64 elements: two loads, a sum, a store.
    %y = graph.kernel "twice"(%x) : (tensor<64xf32>) -> tensor<64xf32> {
    ^bb0(%0: tensor<64xf32>):
      %1 = graph.add %0, %0 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      graph.yield %1 : tensor<64xf32>
    }
    // 8 rows of 16: a load and a sum of each, a store of each row.
    %s = graph.kernel "sums"(%a) : (tensor<8x16xf32>) -> tensor<8xf32> {
    ^bb0(%0: tensor<8x16xf32>):
      %1 = graph.reduce sum %0 {axes = array<i64: 1>} : (tensor<8x16xf32>) -> tensor<8xf32>
      graph.yield %1 : tensor<8xf32>
    }
    return %y, %s : tensor<64xf32>, tensor<8xf32>
  }
}
