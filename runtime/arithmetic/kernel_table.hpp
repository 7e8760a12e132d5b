#pragma once

#include "runtime/arithmetic/activation_kernels.hpp"
#include "runtime/arithmetic/attention_kernels.hpp"
#include "runtime/arithmetic/column_kernels.hpp"
#include "runtime/arithmetic/elementary_kernels.hpp"
#include "runtime/arithmetic/elementwise_kernels.hpp"
#include "runtime/arithmetic/gemm_kernels.hpp"
#include "runtime/arithmetic/instruction_set.hpp"
#include "runtime/arithmetic/loss_kernels.hpp"
#include "runtime/arithmetic/norm_kernels.hpp"
#include "runtime/arithmetic/row_kernels.hpp"

namespace rankine {

/// The kernels for elements of type T that one instruction set has, family by family. A family is a struct of
/// function pointers in a header of its own; its source is one of `isa_sources`, which the build compiles
/// once an instruction set, and `fill` puts that set's functions into the struct.
template <class T>
struct KernelTable {
  GemmKernels<T> gemm;
  AttentionKernels<T> attention;
  ElementaryKernels<T> elementary;
  ElementwiseKernels<T> elementwise;
  ActivationKernels<T> activation;
  RowKernels<T> row;
  NormKernels<T> norm;
  LossKernels<T> loss;
  ColumnKernels<T> column;
};

/// The table of a set that this processor must run (processor_runs). T is float or double.
template <class T>
const KernelTable<T>& kernels(InstructionSet set);

bool processor_runs(InstructionSet set);

#ifdef RANKINE_ISA
namespace RANKINE_ISA {
void fill(KernelTable<float>& table);
void fill(KernelTable<double>& table);
}  // namespace RANKINE_ISA
#endif

}  // namespace rankine
