#include "examples/gpt_model.hpp"

namespace rankine {

Model make_gpt(const GptShape& shape) {
  const auto [vocabulary, length, width, blocks, heads, dropout] = shape;
  ModelBuilder gpt("gpt");
  const Symbol tokens = gpt.input("tokens", {length}, DType::int32);
  const Symbol positions = gpt.input("positions", {length}, DType::int32);
  const Symbol words = gpt.layer("Embedding", {{"input_dim", vocabulary}, {"output_dim", width}}, {tokens});
  const Symbol places = gpt.layer("Embedding", {{"input_dim", length}, {"output_dim", width}}, {positions});
  Symbol x = gpt.layer("Add", {}, {words, places});
  for (std::int64_t block = 0; block < blocks; ++block) {
    Symbol h = gpt.layer("LayerNormalization", {{"epsilon", 1e-5}}, {x});
    h = gpt.layer("MultiHeadAttention", {{"num_heads", heads}, {"key_dim", width / heads}}, {h, h},
                  {.use_causal_mask = true});
    h = gpt.layer("Dropout", {{"rate", dropout}}, {h});
    x = gpt.layer("Add", {}, {x, h});
    h = gpt.layer("LayerNormalization", {{"epsilon", 1e-5}}, {x});
    h = gpt.layer("Dense", {{"units", 4 * width}, {"activation", "gelu"}}, {h});
    h = gpt.layer("Dense", {{"units", width}}, {h});
    h = gpt.layer("Dropout", {{"rate", dropout}}, {h});
    x = gpt.layer("Add", {}, {x, h});
  }
  x = gpt.layer("LayerNormalization", {{"epsilon", 1e-5}}, {x});
  return gpt.build({gpt.layer("Dense", {{"units", vocabulary}, {"name", "logits"}}, {x})});
}

}  // namespace rankine
