// On a GPU products of many rows whose results meet element by element stay apart: the one that is computed last takes
// the other where it stores. Of few rows, and of results that go different ways, they become one.
// RUN: charonia-opt %s --merge-contractions=apart-rows=128 --split-input-file | FileCheck %s
// RUN: charonia-opt %s --merge-contractions --split-input-file | FileCheck %s --check-prefix=CPU

// CHECK-LABEL: func.func @main(
// CHECK-COUNT-2: graph.matmul
// CHECK-NOT:     graph.matmul
// CHECK:         return
// CPU-LABEL: func.func @main(
// CPU:         graph.matmul {{.*}} -> tensor<128x192xf16>
// CPU-NOT:     graph.matmul
module {
  func.func @main(%x: tensor<128x64xf16>) -> tensor<128x96xf16> {
    %g = graph.weight "g" : tensor<64x96xf16>
    %u = graph.weight "u" : tensor<64x96xf16>
    %0 = graph.matmul %x, %g : (tensor<128x64xf16>, tensor<64x96xf16>) -> tensor<128x96xf16>
    %1 = graph.matmul %x, %u : (tensor<128x64xf16>, tensor<64x96xf16>) -> tensor<128x96xf16>
    %2 = graph.sigmoid %0 : (tensor<128x96xf16>) -> tensor<128x96xf16>
    %3 = graph.mul %0, %2 : (tensor<128x96xf16>, tensor<128x96xf16>) -> tensor<128x96xf16>
    %4 = graph.mul %3, %1 : (tensor<128x96xf16>, tensor<128x96xf16>) -> tensor<128x96xf16>
    return %4 : tensor<128x96xf16>
  }
}

// -----

// CHECK-LABEL: func.func @main(
// CHECK:         graph.matmul {{.*}} -> tensor<127x192xf16>
// CHECK-NOT:     graph.matmul
module {
  func.func @main(%x: tensor<127x64xf16>) -> tensor<127x96xf16> {
    %g = graph.weight "g" : tensor<64x96xf16>
    %u = graph.weight "u" : tensor<64x96xf16>
    %0 = graph.matmul %x, %g : (tensor<127x64xf16>, tensor<64x96xf16>) -> tensor<127x96xf16>
    %1 = graph.matmul %x, %u : (tensor<127x64xf16>, tensor<64x96xf16>) -> tensor<127x96xf16>
    %2 = graph.mul %0, %1 : (tensor<127x96xf16>, tensor<127x96xf16>) -> tensor<127x96xf16>
    return %2 : tensor<127x96xf16>
  }
}

// -----

// CHECK-LABEL: func.func @main(
// CHECK:         graph.matmul {{.*}} -> tensor<128x192xf16>
// CHECK-NOT:     graph.matmul
module {
  func.func @main(%x: tensor<128x64xf16>) -> (tensor<128x96xf16>, tensor<128x96xf16>) {
    %g = graph.weight "g" : tensor<64x96xf16>
    %u = graph.weight "u" : tensor<64x96xf16>
    %0 = graph.matmul %x, %g : (tensor<128x64xf16>, tensor<64x96xf16>) -> tensor<128x96xf16>
    %1 = graph.matmul %x, %u : (tensor<128x64xf16>, tensor<64x96xf16>) -> tensor<128x96xf16>
    %2 = graph.sigmoid %0 : (tensor<128x96xf16>) -> tensor<128x96xf16>
    return %2, %1 : tensor<128x96xf16>, tensor<128x96xf16>
  }
}

// -----

// The rest of what reads the same, two of four here, becomes one.
// CHECK-LABEL: func.func @main(
// CHECK-DAG:     graph.matmul {{.*}} -> tensor<128x192xf16>
// CHECK-DAG:     graph.matmul {{.*}} -> tensor<128x96xf16>
// CHECK-DAG:     graph.matmul {{.*}} -> tensor<128x96xf16>
// CHECK-NOT:     graph.matmul
// CPU-LABEL: func.func @main(
// CPU:         graph.matmul {{.*}} -> tensor<128x384xf16>
// CPU-NOT:     graph.matmul
module {
  func.func @main(%x: tensor<128x64xf16>) -> (tensor<128x96xf16>, tensor<128x96xf16>, tensor<128x96xf16>) {
    %q = graph.weight "q" : tensor<64x96xf16>
    %g = graph.weight "g" : tensor<64x96xf16>
    %k = graph.weight "k" : tensor<64x96xf16>
    %u = graph.weight "u" : tensor<64x96xf16>
    %0 = graph.matmul %x, %q : (tensor<128x64xf16>, tensor<64x96xf16>) -> tensor<128x96xf16>
    %1 = graph.matmul %x, %g : (tensor<128x64xf16>, tensor<64x96xf16>) -> tensor<128x96xf16>
    %2 = graph.matmul %x, %k : (tensor<128x64xf16>, tensor<64x96xf16>) -> tensor<128x96xf16>
    %3 = graph.matmul %x, %u : (tensor<128x64xf16>, tensor<64x96xf16>) -> tensor<128x96xf16>
    %4 = graph.sigmoid %1 : (tensor<128x96xf16>) -> tensor<128x96xf16>
    %5 = graph.mul %4, %3 : (tensor<128x96xf16>, tensor<128x96xf16>) -> tensor<128x96xf16>
    return %0, %2, %5 : tensor<128x96xf16>, tensor<128x96xf16>, tensor<128x96xf16>
  }
}
