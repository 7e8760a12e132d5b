#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/data/dataset.hpp"

namespace rankine {

/// Language models' data: a long row of ids, cut into consecutive windows of `length` ids, where length is
/// that of the model's id input. The target of each id is the next one. A last part shorter than length + 1
/// is left out.
struct WindowOptions {
  std::vector<std::string> positions;  ///< inputs filled with 0 .. length-1 ("arange")
};

/// The sorted set of bytes in a text: character c has the id of its place in it. Scans the whole file once.
/// Throws DataError.
std::string text_vocabulary(const std::string& path);

/// Windows over the characters (bytes) of a text, with the ids of `vocabulary` (validation data has that of
/// the training text; `read` refuses a character outside of it). Throws DataError, and ConfigError when the
/// request isn't that of a language model.
std::unique_ptr<Dataset> open_text_dataset(const std::string& path, const std::string& vocabulary,
                                           const DataRequest& request, const WindowOptions& options);

/// Windows over raw little-endian token ids, uint16 or uint32 by `bytes_per_token` (2 or 4). Throws as
/// open_text_dataset does.
std::unique_ptr<Dataset> open_token_dataset(const std::string& path, int bytes_per_token,
                                            const DataRequest& request, const WindowOptions& options);

}  // namespace rankine
