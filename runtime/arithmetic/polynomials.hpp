#pragma once

// Written by tools/derive-polynomials. Changing a bit of it changes what every model computes.

namespace rankine::RANKINE_ISA {

/// Coefficients, lowest first.
template <class T>
struct Polynomials;

template <>
struct Polynomials<float> {
  /// exp(r) = 1 + r + r^2 P(r), |r| <= ln(2) / 2
  static constexpr float exp[] = {0x1.fffffcp-2F, 0x1.555492p-3F, 0x1.5558f2p-5F, 0x1.1239e2p-7F,
                                  0x1.6a2444p-10F};
  /// log(1 + f) = 2 s + s z P(z), s = f / (2 + f), z = s^2
  static constexpr float log[] = {0x1.55557ap-1F, 0x1.995e9cp-2F, 0x1.31e676p-2F};
  /// tanh(x) = x + x z P(z), z = x^2, |x| <= 5/8
  static constexpr float tanh[] = {-0x1.555532p-2F, 0x1.110726p-3F, -0x1.b83c5ap-5F, 0x1.52269ap-6F,
                                   -0x1.75e1cap-8F};
  /// erf(x) = x + x P(z), z = x^2, |x| <= 1
  static constexpr float erf[] = {0x1.06eba8p-3F, -0x1.812746p-2F,  0x1.ce2f08p-4F,  -0x1.b829a8p-6F,
                                  0x1.5628eep-8F, -0x1.bcbe9ap-11F, 0x1.d82694p-14F, -0x1.43840ap-17F};
  /// normal(-x) = exp(-x^2 / 2) v P(w), v = 1 / (5/2 + x), w = 7 v - 1, x >= 1
  static constexpr float tail[] = {0x1.2fef74p-1F,  0x1.058798p-2F,  0x1.136332p-4F,
                                   0x1.c5e494p-9F,  -0x1.03252cp-8F, -0x1.488ff8p-11F,
                                   0x1.837ce8p-12F, 0x1.c004d8p-15F, -0x1.3ee8f4p-15F};
  /// normal(x) = 1/2 + 3/8 x + x P(z), z = x^2, |x| <= 1
  static constexpr float normal[] = {0x1.88453p-6F,    -0x1.105826p-4F, 0x1.46cc3ep-7F,
                                     -0x1.36d8aep-10F, 0x1.d9c178p-14F, -0x1.f4d38ep-18F};
};

template <>
struct Polynomials<double> {
  /// exp(r) = 1 + r + r^2 P(r), |r| <= ln(2) / 2
  static constexpr double exp[] = {0x1.000000000000ap-1,  0x1.55555555554fap-3,  0x1.555555555087dp-5,
                                   0x1.1111111127be7p-7,  0x1.6c16c1842a0ffp-10, 0x1.a01a012a570b6p-13,
                                   0x1.a0199a0c691c3p-16, 0x1.71df2553cf019p-19, 0x1.28ad72cc49578p-22,
                                   0x1.ad7f6c633011bp-26};
  /// log(1 + f) = 2 s + s z P(z), s = f / (2 + f), z = s^2
  static constexpr double log[] = {0x1.5555555555593p-1, 0x1.999999997fb31p-2, 0x1.2492494217a15p-2,
                                   0x1.c71c51e7f759p-3,  0x1.7466462c9394cp-3, 0x1.39a0f5012195fp-3,
                                   0x1.2f0d8ea940b6p-3};
  /// tanh(x) = x + x z P(z), z = x^2, |x| <= 5/8
  static constexpr double tanh[] = {-0x1.5555555555555p-2,  0x1.11111111110d1p-3,  -0x1.ba1ba1ba1735bp-5,
                                    0x1.664f488183d0ep-6,   -0x1.226e3529dea79p-7, 0x1.d6d3c5a983feap-9,
                                    -0x1.7da29488ce226p-10, 0x1.354da51166653p-11, -0x1.f4bd1c892509ep-13,
                                    0x1.919bf03fdbea2p-14,  -0x1.333cb1cd9e58p-15, 0x1.8bc296622be51p-17,
                                    -0x1.30e91744031d7p-19};
  /// erf(x) = x + x P(z), z = x^2, |x| <= 1
  static constexpr double erf[] = {0x1.06eba8214db69p-3,   -0x1.812746b0379e7p-2,  0x1.ce2f21a042bddp-4,
                                   -0x1.b82ce3128899bp-6,  0x1.565bcd0e64ab7p-8,   -0x1.c02db3fed8f6ep-11,
                                   0x1.f9a326bfb725p-14,   -0x1.f4d255e147e3ap-17, 0x1.b9e64d07dab17p-20,
                                   -0x1.5f6d6b525301cp-23, 0x1.fc41172162e46p-27,  -0x1.4e55ccc9d07b4p-30,
                                   0x1.7ecbf8379d2bcp-34,  -0x1.2928f43a136c6p-38};
  /// normal(-x) = exp(-x^2 / 2) v P(w), v = 1 / (5/2 + x), w = 7 v - 1, x >= 1
  static constexpr double tail[] = {
      0x1.2fef7393b33c4p-1,   0x1.05879639640aep-2,   0x1.136353daa997ep-4,   0x1.c5fbece4a4cb3p-9,
      -0x1.033f319980dddp-8,  -0x1.4ab48cacc2bf1p-11, 0x1.8b47f51a9978bp-12,  0x1.ff4145740633cp-15,
      -0x1.b6c1d731a74fap-15, -0x1.18a6c5cb8e46p-19,  0x1.113b5139a7ea6p-17,  -0x1.5940dac63c342p-20,
      -0x1.211f2d5777acfp-20, 0x1.14a3e5944ee3ap-21,  0x1.a8fe0fc766992p-25,  -0x1.f586108a007ecp-24,
      0x1.fec5d5505628p-26,   0x1.e275f7d26983p-27,   -0x1.76ee0e46a4e5bp-27, 0x1.8d9a333b10341p-31,
      0x1.a9f191817661ap-30,  -0x1.f15fd6fb680d9p-32};
  /// normal(x) = 1/2 + 3/8 x + x P(z), z = x^2, |x| <= 1
  static constexpr double normal[] = {0x1.884533d436508p-6,   -0x1.1058377e2ced7p-4,  0x1.46d0429768b19p-7,
                                      -0x1.37403f6b7b14dp-10, 0x1.e42b0d4310677p-14,  -0x1.3ce8f8ebf11e1p-17,
                                      0x1.6589d747efb2fp-21,  -0x1.621aabaededabp-25, 0x1.37f09e70c5f36p-29,
                                      -0x1.e5279f520f6b2p-34, 0x1.1a4909b4e7b53p-38};
};

}  // namespace rankine::RANKINE_ISA
