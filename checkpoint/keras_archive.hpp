#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "checkpoint/weights_file.hpp"

namespace rankine {

/// What an archive may ask of memory before it is taken for an attack: Keras's own limits, and one for texts.
struct ArchiveLimits {
  std::size_t text_bytes = std::size_t{256} << 20;  ///< of config.json and metadata.json
  std::size_t floor_bytes = std::size_t{4} << 30;   ///< bigger members ...
  std::size_t ratio = 100;                          ///< ... must not be this many times what is stored
};

/// A `.keras` file: a zip of `config.json`, `metadata.json` and `model.weights.h5`, in any order, stored or
/// deflated; or a folder with the same names. Not collective. Throws CheckpointError.
class KerasArchive {
 public:
  static KerasArchive open(const std::string& path, const ArchiveLimits& limits = {});
  KerasArchive(KerasArchive&&) noexcept;
  KerasArchive& operator=(KerasArchive&&) noexcept;
  ~KerasArchive();

  const std::string& config() const;    ///< JSON text
  const std::string& metadata() const;  ///< JSON text, "" when the member is missing (Keras doesn't need it)
  WeightsFile weights() const;

  /// True for a folder with a config.json and for a file that begins as a zip does.
  static bool looks_like(const std::string& path);

 private:
  struct State;
  explicit KerasArchive(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Writes a `.keras` file as Keras does, whole or not at all. `weights` is the content of model.weights.h5.
void write_archive(const std::string& path, const std::string& config, std::span<const std::byte> weights);

}  // namespace rankine
