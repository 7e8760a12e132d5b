#pragma once

#include <cstdint>
#include <string_view>

namespace rankine {

/// Instruction sets that the CPU kernels are built for. All give equal bits.
enum class InstructionSet : std::uint8_t { portable, avx2, avx512 };
std::string_view name_of(InstructionSet set);  ///< "avx512"
/// The best one that this processor runs.
InstructionSet best_instruction_set();
InstructionSet instruction_set_from_name(
    std::string_view name);  ///< "portable", "avx2", "avx512"; throws UsageError

}  // namespace rankine
