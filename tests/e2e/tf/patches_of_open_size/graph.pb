
L
xPlaceholder*
dtype0*-
shape$:"ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
†
ExtractImagePatchesExtractImagePatchesx*
ksizes
*
strides
*
T0*
paddingVALID*
rates

2
IdentityIdentityExtractImagePatches*
T0
‡
ExtractImagePatches_1ExtractImagePatchesx*
ksizes
*
strides
*
T0*
paddingSAME*
rates

6

Identity_1IdentityExtractImagePatches_1*
T0"ª