// What each kernel does can be counted by hand.
module attributes {graph.device = "cpu", graph.precision = "fp32", graph.stage = "kernels"} {
  func.func @main(%x: tensor<64xf32> {graph.name = "x"}, %a: tensor<8x16xf32> {graph.name = "a"}, %k: tensor<64xi64> {graph.name = "k"}) -> (tensor<64xf32> {graph.name = "y"}, tensor<8xf32> {graph.name = "s"}, tensor<64xf32> {graph.name = "c"}, tensor<64xi64> {graph.name = "o"}) {
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
    // 64 elements: a load, two sums (in the block, with what is carried), a store. Each is
    // taken, combined and put: 4 are asked for beside the reading and the writing.
    %c = graph.kernel "scanned"(%x) : (tensor<64xf32>) -> tensor<64xf32> {
    ^bb0(%0: tensor<64xf32>):
      %1 = graph.scan sum %0 {axis = 0} : (tensor<64xf32>) -> tensor<64xf32>
      graph.yield %1 : tensor<64xf32>
    }
    // A load and a store; then two reads and two writes in each of 6 levels. 4 in each of
    // 7 passes are asked for.
    %o = graph.kernel "sorted"(%k) : (tensor<64xi64>) -> tensor<64xi64> {
    ^bb0(%0: tensor<64xi64>):
      %1 = graph.sort %0 {count = affine_map<() -> (64)>} : (tensor<64xi64>) -> tensor<64xi64>
      graph.yield %1 : tensor<64xi64>
    }
    return %y, %s, %c, %o : tensor<64xf32>, tensor<8xf32>, tensor<64xf32>, tensor<64xi64>
  }
}
