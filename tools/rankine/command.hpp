#pragma once

#include <span>
#include <string>

#include "runtime/mesh/world.hpp"

namespace rankine {

using Arguments = std::span<const std::string>;

/// `rankine train`: every rank of the world calls it with the same arguments. Throws rankine::Error, on all
/// ranks where all can know.
void run_train(World& world, Arguments arguments);

/// `rankine evaluate` and `rankine predict`, likewise.
void run_evaluate(World& world, Arguments arguments);
void run_predict(World& world, Arguments arguments);

/// `rankine inspect PATH`: prints what a Keras file holds. Needs no ranks.
void run_inspect(Arguments arguments);

/// The text of `rankine inspect --help`.
std::string inspect_help();

/// `rankine doctor`: prints what the ranks have. Collective. Throws ConfigError when they can't train
/// together.
void run_doctor(World& world, Arguments arguments);
std::string doctor_help();

/// "rankine 0.1.0", and with the versions of MPI and HDF5 as `rankine --version` prints them.
std::string version_line();
std::string version_text();

}  // namespace rankine
