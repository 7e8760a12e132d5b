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
  /// erfc(t) = exp(-t^2) v P(w), v = 1 / (11/4 + t), w = 11/2 v - 1, t >= 0
  static constexpr float erfc[] = {0x1.10ad1ep0F,   0x1.b21274p-1F,  0x1.0d9e8ep-1F,  0x1.ef86d2p-3F,
                                   0x1.214dfp-4F,   0x1.2f3e0ep-8F,  -0x1.750d2ep-8F, -0x1.c06ab8p-10F,
                                   0x1.f73d56p-12F, 0x1.06d2f6p-12F, -0x1.538dc2p-14F};
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
  /// erfc(t) = exp(-t^2) v P(w), v = 1 / (11/4 + t), w = 11/2 v - 1, t >= 0
  static constexpr double erfc[] = {
      0x1.10ad1d82f6b64p0,   0x1.b2127302a037cp-1,   0x1.0d9e9026c1e27p-1,   0x1.ef86d9cb8d258p-3,
      0x1.214c6391b7c87p-4,  0x1.2f3af05a677a1p-8,   -0x1.745f9dab27184p-8,  -0x1.c1877b39e7438p-10,
      0x1.d7880b26dcb8p-12,  0x1.22d1baa37e56p-12,   -0x1.b904c9b7a66c6p-15, -0x1.6e551cbee0636p-15,
      0x1.5ba1052e24f49p-17, 0x1.cb7e1ce1a7412p-18,  -0x1.6420d750da92ep-19, -0x1.f1131d2d43eeap-21,
      0x1.6fbf2f22cffc2p-21, 0x1.d9b0e56d23829p-25,  -0x1.4c764a18030e7p-23, 0x1.77a58e16c47d3p-26,
      0x1.c46e2269b460fp-26, -0x1.2d492104a87bcp-27, -0x1.4d71e7cad736dp-29, 0x1.4bc3fba76856dp-30};
};

}  // namespace rankine::RANKINE_ISA
