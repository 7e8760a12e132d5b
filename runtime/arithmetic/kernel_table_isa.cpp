// Compiled once an instruction set: that set's table, put together from its families.

#include "runtime/arithmetic/kernel_table.hpp"

namespace rankine::RANKINE_ISA {
namespace {

template <class T>
void fill_families(KernelTable<T>& table) {
  fill(table.gemm);
  fill(table.attention);
  fill(table.elementary);
  fill(table.elementwise);
  fill(table.activation);
  fill(table.row);
  fill(table.norm);
  fill(table.loss);
  fill(table.column);
}

}  // namespace

void fill(KernelTable<float>& table) {
  fill_families(table);
}
void fill(KernelTable<double>& table) {
  fill_families(table);
}

}  // namespace rankine::RANKINE_ISA
