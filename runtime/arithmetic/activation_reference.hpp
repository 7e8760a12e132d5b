#pragma once

#include "runtime/arithmetic/activation_function.hpp"

/// Activations one element at a time, as Keras writes them and as JAX differentiates them: what the kernels
/// must equal bit for bit. See reference.hpp.
namespace rankine::reference {

template <class T>
T activation(const ActivationFunction& f, T x);
/// f'(x)
template <class T>
T activation_slope(const ActivationFunction& f, T x);

}  // namespace rankine::reference
