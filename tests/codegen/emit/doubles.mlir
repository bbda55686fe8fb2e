// RUN: charonia-opt %s -emit-tiles=target=x86-64-v3 | FileCheck %s --check-prefix=V3
// RUN: charonia-opt %s -emit-tiles=target=x86-64-v4 | FileCheck %s --check-prefix=V4

// A register has half as many doubles as floats: the sums of a tile are two registers of each row and fit
// beside what they are made of.
// V3-LABEL: func.func @product
// V3: tile.dot {{.*}} -> tensor<6x8xf64>
// V4-LABEL: func.func @product
// V4: tile.dot {{.*}} -> tensor<12x16xf64>
// A row has as many columns as take a cache's line twice, whatever registers hold.
// V3-LABEL: func.func @row
// V3: scf.for {{.*}} -> (tensor<16xf64>)
// V4-LABEL: func.func @row
// V4: scf.for {{.*}} -> (tensor<16xf64>)
module {
  func.func @main(%x: tensor<384x512xf64>, %w: tensor<512x96xf64>, %y: tensor<1x512xf64>) -> (tensor<384x96xf64>, tensor<1x96xf64>) {
    %0 = graph.kernel "product" (%x, %w) : (tensor<384x512xf64>, tensor<512x96xf64>) -> tensor<384x96xf64> {
    ^bb0(%a: tensor<384x512xf64>, %c: tensor<512x96xf64>):
      %1 = graph.matmul %a, %c : (tensor<384x512xf64>, tensor<512x96xf64>) -> tensor<384x96xf64>
      graph.yield %1 : tensor<384x96xf64>
    }
    %2 = graph.kernel "row" (%y, %w) : (tensor<1x512xf64>, tensor<512x96xf64>) -> tensor<1x96xf64> {
    ^bb0(%a: tensor<1x512xf64>, %c: tensor<512x96xf64>):
      %3 = graph.matmul %a, %c : (tensor<1x512xf64>, tensor<512x96xf64>) -> tensor<1x96xf64>
      graph.yield %3 : tensor<1x96xf64>
    }
    return %0, %2 : tensor<384x96xf64>, tensor<1x96xf64>
  }
}
