#include "runtime/arithmetic/kernel_table.hpp"

#include <array>
#include <string>

#include "runtime/error.hpp"

namespace rankine {

// Defined by kernel_table_isa.cpp, one namespace an instruction set.
#define RANKINE_DECLARE(isa)       \
  namespace isa {                  \
  void fill(KernelTable<float>&);  \
  void fill(KernelTable<double>&); \
  }
RANKINE_DECLARE(portable)
#ifdef __x86_64__
RANKINE_DECLARE(avx2)
RANKINE_DECLARE(avx512)
#endif
#undef RANKINE_DECLARE

namespace {

constexpr std::array<std::string_view, 3> k_names{"portable", "avx2", "avx512"};

/// Empty where the processor lacks the set: even the functions that fill its table are made of its
/// instructions.
template <class T>
KernelTable<T> make_table(InstructionSet set) {
  KernelTable<T> table;
  if (!processor_runs(set)) return table;
  switch (set) {
#ifdef __x86_64__
    case InstructionSet::avx512:
      avx512::fill(table);
      break;
    case InstructionSet::avx2:
      avx2::fill(table);
      break;
#endif
    default:
      portable::fill(table);
  }
  return table;
}

}  // namespace

template <class T>
const KernelTable<T>& kernels(InstructionSet set) {
  static const std::array<KernelTable<T>, k_names.size()> tables{make_table<T>(InstructionSet::portable),
                                                                 make_table<T>(InstructionSet::avx2),
                                                                 make_table<T>(InstructionSet::avx512)};
  return tables[static_cast<std::size_t>(set)];
}
template const KernelTable<float>& kernels<float>(InstructionSet);
template const KernelTable<double>& kernels<double>(InstructionSet);

bool processor_runs(InstructionSet set) {
  switch (set) {
#ifdef __x86_64__
    case InstructionSet::avx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
             processor_runs(InstructionSet::avx2);
    case InstructionSet::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    default:
      return set == InstructionSet::portable;
  }
}

InstructionSet best_instruction_set() {
  for (const InstructionSet set : {InstructionSet::avx512, InstructionSet::avx2}) {
    if (processor_runs(set)) return set;
  }
  return InstructionSet::portable;
}

std::string_view name_of(InstructionSet set) {
  return k_names[static_cast<std::size_t>(set)];
}

InstructionSet instruction_set_from_name(std::string_view name) {
  for (std::size_t i = 0; i < k_names.size(); ++i) {
    if (k_names[i] == name) return static_cast<InstructionSet>(i);
  }
  throw UsageError("unknown instruction set '" + std::string(name) + "': use portable, avx2 or avx512");
}

}  // namespace rankine
