#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace rankine {

/// An operation is what Keras writes for `x + y` or `ops.reshape(x, …)` among a model's layers: an envelope
/// whose module is that of its function. It has no weights and no place in weights files. Its constants stand
/// in `inbound_nodes` between the tensors.
bool is_operation(const nlohmann::json& envelope);

/// What the maker of an operation's layer reads: the operation's own config with "args", the arguments of its
/// call, where each tensor is {"class_name": "__keras_tensor__"}, and the dtype that Keras computed it in.
/// Throws ConfigError "<owner> …" when calls of one operation have different constants.
nlohmann::json operation_config(const nlohmann::json& envelope, const std::string& owner);

/// The operation's `inbound_nodes` with the tensors alone, as those of a layer.
nlohmann::json operation_nodes(const nlohmann::json& envelope);

/// Whether an argument of operation_config is a tensor.
bool is_tensor_argument(const nlohmann::json& argument);

}  // namespace rankine
