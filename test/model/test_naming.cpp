#include <catch2/catch.hpp>

#include "runtime/model/naming.hpp"

using namespace rankine;

TEST_CASE("class names become snake case as Keras does it", "[model][naming]") {
  const std::pair<const char*, const char*> k_table[] = {
      {"RMSprop", "rm_sprop"},
      {"AdamW", "adam_w"},
      {"ReLU", "re_lu"},
      {"PReLU", "p_re_lu"},
      {"Conv2D", "conv2d"},
      {"GlobalAveragePooling1D", "global_average_pooling1d"},
      {"RMSNormalization", "rms_normalization"},
      {"MyHTTPLayer", "my_http_layer"},
      {"Dense_V2", "dense_v2"},
      {"GroupedQueryAttention", "grouped_query_attention"},
      {"my layer!", "mylayer"},
      {"", ""},
      {"A", "a"},
      {"ABc", "a_bc"},
      {"AbCDe", "ab_c_de"},
      {"AbbCcDDd", "abb_cc_d_dd"},
  };
  for (const auto& [name, snake] : k_table) {
    CAPTURE(name);
    CHECK(to_snake_case(name) == snake);
  }
}

TEST_CASE("repeated names are counted", "[model][naming]") {
  NameCounter counter;
  CHECK(counter.next("dense") == "dense");
  CHECK(counter.next("add") == "add");
  CHECK(counter.next("dense") == "dense_1");
  CHECK(counter.next("dense") == "dense_2");
  CHECK(counter.next("add") == "add_1");
}
