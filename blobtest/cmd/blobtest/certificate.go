package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// A keyPair is a certificate and its key, in PEM.
type keyPair struct{ cert, key []byte }

// makeCertificate makes a self-signed certificate for this machine, the given host, and the host names that
// clients use for an emulator. The certificate is valid for a year of real time, because clients check it
// with their own clocks.
func makeCertificate(host string) (pair keyPair, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return pair, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "blobtest"},
		NotBefore:    time.Now().Add(-24 * time.Hour), // the clock of a client might be slow
		NotAfter:     time.Now().Add(365 * 24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     []string{"localhost", "*.blob.localhost", "*.blob.core.windows.net"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = append(template.IPAddresses, ip)
	} else if host != "" {
		template.DNSNames = append(template.DNSNames, host)
	}
	if name, err := os.Hostname(); err == nil && name != "" {
		template.DNSNames = append(template.DNSNames, name)
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return pair, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return pair, err
	}
	return keyPair{
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}, nil
}

// listenTLS adds TLS to the listener l, with the certificate and the key in the given files. If certFile is
// empty, it writes a new certificate to a temporary file, and returns the name of this file and a function
// that deletes it. Otherwise the name is empty, and the function does nothing.
func listenTLS(l net.Listener, certFile, keyFile, addr string) (secure net.Listener, file string, remove func(), err error) {
	var cert tls.Certificate
	remove = func() {}
	if certFile != "" {
		if cert, err = tls.LoadX509KeyPair(certFile, keyFile); err != nil {
			return nil, "", remove, fmt.Errorf("-cert %s -key %s: %w", certFile, keyFile, err)
		}
	} else {
		host, _, _ := net.SplitHostPort(addr)
		pair, err := makeCertificate(host)
		if err != nil {
			return nil, "", remove, err
		}
		if cert, err = tls.X509KeyPair(pair.cert, pair.key); err != nil {
			return nil, "", remove, err
		}
		if file, err = writeTemporary(pair.cert); err != nil {
			return nil, "", remove, err
		}
		remove = func() { _ = os.Remove(file) }
	}
	return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}}), file, remove, nil
}

// writeTemporary writes b to a new file in the directory for temporary files. If this directory is missing,
// as in a minimal container image, it is created.
func writeTemporary(b []byte) (name string, err error) {
	if err := os.MkdirAll(os.TempDir(), 0o777); err != nil {
		return "", err
	}
	f, err := os.CreateTemp("", "blobtest-*.pem")
	if err != nil {
		return "", err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}
