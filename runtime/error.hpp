#pragma once

#include <stdexcept>
#include <string>

namespace rankine {

/// What the program returns to its launcher. README documents these numbers.
enum class ExitCode : int {
  done = 0,
  usage = 2,         ///< the command line or the job file can't be understood
  refused = 3,       ///< the model, the data or the configuration is refused, or training met a NaN
  checkpoint = 4,    ///< a checkpoint or weights file is missing, damaged or of another model
  rank_failed = 70,  ///< a rank hung or died, or the communication failed
  stopped = 75,      ///< stopped by a signal after saving; run it again to go on
};

/// Everything that the library throws. The text says what happened, to what, and what to do; `main` prints it
/// once.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& text) : std::runtime_error(text), code_(code) {}
  ExitCode exit_code() const { return code_; }

 private:
  ExitCode code_;
};

/// The command line or job file is wrong.
struct UsageError : Error {
  explicit UsageError(const std::string& text) : Error(ExitCode::usage, text) {}
};
/// A model, its compile config or a setting is refused.
struct ConfigError : Error {
  explicit ConfigError(const std::string& text) : Error(ExitCode::refused, text) {}
};
/// A data file or a value in it is refused.
struct DataError : Error {
  explicit DataError(const std::string& text) : Error(ExitCode::refused, text) {}
};
/// Training met a value that isn't finite.
struct NumericError : Error {
  explicit NumericError(const std::string& text) : Error(ExitCode::refused, text) {}
};
/// A checkpoint or weights file is missing, damaged, or belongs to another model.
struct CheckpointError : Error {
  explicit CheckpointError(const std::string& text) : Error(ExitCode::checkpoint, text) {}
};
/// MPI failed, a peer is gone, or a deadline passed.
struct CommunicationError : Error {
  explicit CommunicationError(const std::string& text) : Error(ExitCode::rank_failed, text) {}
};

}  // namespace rankine
