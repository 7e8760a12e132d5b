#pragma once

#include <string>

#include "tools/rankine/settings.hpp"

namespace rankine {

/// A model's compile config with the job file's [compile] put over it.
struct CompileSettings {
  std::string config;  ///< JSON text of the whole compile config
  bool keeps_optimizer =
      true;  ///< false when the job file changes it, so that a saved state no longer applies
};

/// `config` is the model's own compile config, or "" for a model that isn't compiled. "optimizer", "loss",
/// "loss_weights" and "metrics" replace what is there; every other key is one of the optimizer's. Throws
/// UsageError for a key that looks like a misspelt one of these, and ConfigError when in the end there is no
/// loss, or no optimizer to train with.
CompileSettings compile_settings(const std::string& config, const CompileOverrides& overrides,
                                 ModelCommand command);

}  // namespace rankine
